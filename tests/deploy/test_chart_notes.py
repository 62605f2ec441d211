"""The notes after an installation name the next step, the engine's flag that may be missing, and the way out again."""

import re
import unittest

import cases
import charts


def notes(values):
    return charts.notes(charts.render(values))


class Notes(unittest.TestCase):
    def test_the_first_step_names_the_second(self):
        for name in ("gateway", "gateway-unquoted-off"):
            said = notes(cases.CHART[name])
            self.assertIn("with injection off", said)
            self.assertIn("helm upgrade demo helm/spectap -n inference --reuse-values --set inject=auto", said)
        said = notes({"upstream": {"service": "vllm"}, "inject": "auto"})
        self.assertIn("with injection auto", said)
        self.assertNotIn("--set inject=auto", said)

    def test_the_flag_that_the_engine_needs_is_named(self):
        said = {engine: notes({"upstream": {"service": "vllm"}, "engine": engine}) for engine in ("", "vllm", "trtllm", "sglang", "llamacpp")}
        for engine in ("", "vllm"):
            self.assertIn("--per-request-spec-decode-metrics summary", said[engine])
        self.assertIn("per_request_spec_decode_stats: true", said["trtllm"])
        self.assertIn("needs no flag", said["sglang"])
        for engine in ("trtllm", "sglang", "llamacpp"):
            self.assertNotIn("--per-request-spec-decode-metrics", said[engine])

    def test_the_way_out_is_one_command_and_so_is_the_way_back(self):
        known = {"upstream": {"service": "vllm", "podSelector": cases.ENGINE}}
        self.assertRegex(notes(known), r"(?m)^  helm upgrade demo .* --set gateway\.bypass=true$")
        self.assertRegex(notes({**known, "gateway": {"bypass": True}}), r"(?m)^  helm upgrade demo .* --set gateway\.bypass=false$")
        self.assertIn("set upstream.podSelector", notes(cases.CHART["gateway"]))
        beside = notes({"mode": "sidecar"})
        self.assertRegex(beside, r"kubectl -n inference patch service SERVICE --type=json .*targetPort\",\"value\":8000")

    def test_where_numbers_are_protected_the_look_at_them_has_the_token(self):
        self.assertIn('curl -s -H "Authorization: Bearer $TOKEN" http', notes(cases.CHART["gateway-everything"]))
        self.assertIn("curl -s http", notes(cases.CHART["gateway"]))

    def test_whoever_scrapes_is_told_when_nobody_does(self):
        self.assertIn("--set serviceMonitor.enabled=true", notes(cases.CHART["gateway"]))
        self.assertIn("--set podMonitor.enabled=true", notes({"mode": "sidecar"}))
        self.assertNotIn("Nothing scrapes it", notes(cases.CHART["gateway-everything"]))

    def test_a_chart_that_includes_the_tap_can_show_them(self):
        said = charts.notes(charts.render({}, charts.example(), release="qwen3"), "vllm")
        self.assertIn("http://qwen3.inference.svc:8000, with spectap before it", said)
        self.assertNotIn("\n\n\n", said)
        self.assertIn("patch service", said)

    def test_every_value_that_a_note_sets_is_one_that_the_chart_takes(self):
        seen = set()
        for case in [*cases.CHART.values(), {"mode": "sidecar", "upstream": {"podSelector": cases.ENGINE}}]:
            seen |= set(re.findall(r"--set ([a-zA-Z.]+=\w+)", notes(case)))
        self.assertEqual(len(seen), 6, seen)
        for setting in seen:
            name, _, value = setting.partition("=")
            for part in reversed(name.split(".")):
                value = {part: {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value}
            mode = "sidecar" if "podMonitor" in setting else "gateway"
            base = {"mode": mode, "upstream": {"service": "vllm", "podSelector": cases.ENGINE}}
            if "spectap" in value:
                self.assertTrue(charts.render(value, charts.example()), setting)
            else:
                self.assertTrue(charts.render({**base, **value}), setting)

    def test_nothing_is_left_of_the_template(self):
        for case in cases.CHART.values():
            said = notes(case)
            self.assertNotRegex(said, r"\{\{|<no value>|%!|\n\n\n")
            self.assertLessEqual(max(map(len, said.splitlines())), 160)

