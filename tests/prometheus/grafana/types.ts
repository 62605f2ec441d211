// What deploy/grafana/spectap.json must be: Grafana's own types, and for each kind of panel those of its options, so that a
// member that Grafana does not know, or a value that it does not take, is an error. Grafana fills in what is left out.

import type { Dashboard as Anything, FieldConfig, Panel, RowPanel, VariableModel } from '@grafana/schema';
import type * as bargauge from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
import type * as heatmap from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

// JSON has the text of an enumeration's member, and may leave members out.
type Json<T> = unknown extends T
  ? T
  : T extends string
    ? `${T}`
    : T extends number | boolean | null | undefined
      ? T
      : T extends ReadonlyArray<infer Element>
        ? Array<Json<Element>>
        : T extends object
          ? { [Name in keyof T]?: Json<T[Name]> }
          : T;

// `@grafana/schema` has no types of Prometheus queries.
interface Target {
  refId: string;
  datasource: { type: 'prometheus'; uid: '${datasource}' };
  editorMode: 'code';
  expr: string;
  format: 'time_series' | 'table' | 'heatmap';
  instant: boolean;
  range: boolean;
  legendFormat: string;
  exemplar?: boolean;
}

type Own = 'type' | 'options' | 'fieldConfig' | 'targets';
type Of<Kind extends string, Options, Custom> = Json<Omit<Panel, Own>> & {
  type: Kind;
  title: string;
  description: string;
  targets: Target[];
  options: Json<Options>;
  fieldConfig: {
    defaults: Json<Omit<FieldConfig, 'custom'>> & { custom: Json<Custom> };
    overrides: Array<{ matcher: { id: string; options: string }; properties: Array<{ id: string; value: unknown }> }>;
  };
};

export type Dashboard = Json<Omit<Anything, 'panels' | 'templating' | 'weekStart'>> & {
  weekStart: string;
  panels: Array<
    | (Json<Omit<RowPanel, 'type'>> & { type: 'row' })
    | Of<'bargauge', bargauge.Options, object>
    | Of<'heatmap', heatmap.Options, heatmap.FieldConfig>
    | Of<'stat', stat.Options, object>
    | Of<'table', table.Options, table.FieldConfig>
    | Of<'timeseries', timeseries.Options, timeseries.FieldConfig>
  >;
  templating: { list: Array<Json<VariableModel>> };
};
