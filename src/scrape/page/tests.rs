use super::*;
use crate::scrape::schema;

fn sample(name: &str, labels: &str, value: u64) -> String {
    format!("{name}{{{labels}}} {value}\n")
}

/// A page of an engine with every counter of its table: 100 steps, 300 drafted, 160 accepted.
fn whole_page(schema: &Schema) -> String {
    let mut page = String::from("# HELP x y\n");
    for (name, meaning) in schema.series {
        let at = |label: &str, counts: [u64; 3]| {
            let lines = counts.iter().enumerate();
            let lines = lines.map(|(position, count)| {
                sample(
                    name,
                    &format!("{label}=\"{position}\",model_name=\"m\""),
                    *count,
                )
            });
            lines.collect::<String>()
        };
        page += &match meaning {
            Meaning::Steps => sample(name, "model_name=\"m\"", 100),
            Meaning::Drafted => sample(name, "model_name=\"m\"", 300),
            Meaning::Accepted => sample(name, "model_name=\"m\"", 160),
            Meaning::AcceptedAt(label) => at(label, [80, 50, 30]),
            Meaning::DraftedAt(label) => at(label, [100, 100, 100]),
            Meaning::StepsUpTo => {
                let bucket =
                    |le, count| sample(name, &format!("model_name=\"m\",le=\"{le}\""), count);
                bucket("0", 20) + &bucket("1.0", 50) + &bucket("2", 70) + &bucket("+Inf", 100)
            }
            Meaning::GenerationTokens => sample(name, "model_name=\"m\"", 260),
            Meaning::Requests => sample(name, "model_name=\"m\"", 7),
            Meaning::Running => sample(name, "model_name=\"m\"", 2),
            Meaning::Created => sample(name, "model_name=\"m\"", 1_796_087_402),
            Meaning::Gauge { .. } => sample(name, "model_name=\"m\"", 4),
        };
    }
    page
}

#[test]
fn every_engines_series_are_read_for_what_they_mean() {
    // Engine, steps, drafted, accepted, survival known.
    let expected = [
        ("vllm", Some(100), Some(300), Some(160), true),
        ("tensorrt_llm", Some(100), Some(300), Some(160), true),
        ("sglang", Some(100), None, None, false),
        ("llamacpp", Some(100), Some(300), Some(160), true),
        ("lmdeploy", Some(100), Some(300), Some(160), true),
        ("tgi", Some(100), None, Some(160), true),
        ("tokenspeed", Some(100), Some(300), Some(160), false),
        ("rapid_mlx", Some(100), Some(300), Some(160), true),
        ("xllm", Some(100), Some(300), Some(160), true),
    ];
    assert_eq!(expected.len(), schema::ALL.len());
    for (engine, steps, drafted, accepted, survival) in expected {
        let schema = schema::of_engine(engine).unwrap();
        let page = Page::read(whole_page(schema).as_bytes());
        assert_eq!(page.engine(), Some(engine));
        let source = Source {
            engine: engine.to_owned(),
            model: Some("m".to_owned()),
            rank: None,
        };
        let counts = &page.counts[&source];
        assert_eq!(page.counts.len(), 1, "{engine}");
        assert_eq!(
            (counts.steps, counts.drafted, counts.accepted),
            (steps, drafted, accepted),
            "{engine}"
        );
        let positions = BTreeMap::from([(0, 80), (1, 50), (2, 30)]);
        let histogram = BTreeMap::from([(0, 20), (1, 30), (2, 20), (3, 30)]);
        if survival {
            assert_eq!(counts.accepted_at, positions, "{engine}");
            assert_eq!(counts.histogram(), Some(histogram), "{engine}");
            assert_eq!(counts.length(), Some(2.6), "{engine}");
        } else {
            assert_eq!(counts.accepted_at, BTreeMap::new(), "{engine}");
            assert_eq!(counts.histogram(), None, "{engine}");
        }
        assert!(page.gauges.iter().all(|gauge| !gauge.about.is_empty()));
    }
}

#[test]
fn ranks_are_told_apart_copies_count_once_and_labels_may_come_in_any_order() {
    let name = "vllm:spec_decode_num_drafts_total";
    let page = [
        sample(name, "engine=\"0\",model_name=\"m\"", 5),
        sample(name, "model_name=\"m\",engine=\"1\"", 7),
        sample(name, "model_name=\"n\",engine=\"0\",tp_rank=\"0\"", 11),
        sample(name, "model_name=\"n\",engine=\"0\",tp_rank=\"1\"", 11),
    ]
    .concat();
    let page = Page::read(page.as_bytes());
    let steps: Vec<_> = page
        .counts
        .iter()
        .map(|(source, counts)| {
            let model = source.model.as_deref().unwrap();
            (
                model,
                source.rank.as_deref().unwrap(),
                counts.steps.unwrap(),
            )
        })
        .collect();
    assert_eq!(steps, [("m", "0", 5), ("m", "1", 7), ("n", "0", 11)]);
    assert_eq!(page.sum().steps, Some(23));
}

#[test]
fn dynamos_labels_do_not_hide_the_engine() {
    let labels = "dynamo_namespace=\"d\",dynamo_component=\"backend\",dynamo_endpoint=\"generate\",engine=\"0\",model_name=\"m\"";
    let text = sample("vllm:spec_decode_num_drafts_total", labels, 9);
    let page = Page::read(text.as_bytes());
    assert!(page.behind_dynamo);
    assert_eq!((page.engine(), page.sum().steps), (Some("vllm"), Some(9)));
}

#[test]
fn what_no_counter_can_be_is_left_out() {
    let name = "vllm:spec_decode_num_drafts_total";
    let text = format!(
        "{name} NaN\n{name} -1\n{name} 1e300\n{name} +Inf\nvllm:spec_decode_num_accepted_tokens_per_pos_total{{position=\"-1\"}} 4\n\
         vllm:spec_decode_num_accepted_tokens_per_pos_total{{position=\"4000000000\"}} 4\n"
    );
    let page = Page::read(text.as_bytes());
    let sum = page.sum();
    assert_eq!((sum.steps, sum.accepted_at.len()), (None, 0));
}

#[test]
fn so_many_sources_are_folded_and_no_count_is_lost() {
    let name = "vllm:spec_decode_num_drafts_total";
    let text: String = (0..500)
        .map(|rank| sample(name, &format!("engine=\"{rank}\""), 2))
        .collect();
    let page = Page::read(text.as_bytes());
    assert_eq!(
        (page.counts.len(), page.sum().steps),
        (MOST_SOURCES + 1, Some(1_000))
    );
}

#[test]
fn a_real_page_of_vllm_is_read() {
    let capture = include_bytes!(
        "../../../tests/fixtures/captures/vllm-0.32.0/draft-model-detailed/metrics.http"
    );
    let page = Page::read(capture);
    let sum = page.sum();
    assert_eq!(
        (sum.steps, sum.drafted, sum.accepted),
        (Some(424), Some(1272), Some(458))
    );
    assert_eq!(
        sum.accepted_at,
        BTreeMap::from([(0, 236), (1, 132), (2, 90)])
    );
    assert_eq!((page.k, page.engine()), (Some(3), Some("vllm")));
    assert!(page.samples > 300, "{}", page.samples);
}
