"""Helm 3 and Helm 4 render the same, and both say why a cluster is too old."""

import unittest

import cases
import charts
import manifests


class BothHelms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.helms = charts.BothHelms()
        cls.addClassCleanup(cls.helms.close)

    def test_they_render_the_same(self):
        rounds = [(charts.CHART, name, values) for name, values in cases.CHART.items()]
        rounds += [(charts.example(), name, values) for name, values in cases.EXAMPLE.items()]
        for chart, name, values in rounds:
            with self.subTest(name):
                texts = {}
                for version in ("v3", "v4"):
                    done, texts[version] = self.helms.template(version, chart, values, kube_version=manifests.NEWEST + ".0")
                    self.assertTrue(done, texts[version])
                self.assertEqual(texts["v3"], texts["v4"])
                # And as the library does, whose renderings the other tests look at.
                key = lambda document: (document["kind"], document["metadata"]["name"])
                documents = sorted(manifests.parse(texts["v4"]), key=key)
                own = sorted(manifests.parse(charts.manifests(charts.render(values, chart))), key=key)
                # `helm template` prints hooks only where asked to.
                names = {key(document) for document in documents}
                self.assertEqual(documents, [document for document in own if key(document) in names])
                self.assertGreaterEqual(len(documents), 2)

    def test_an_old_cluster_is_told_to_take_the_ordinary_sidecar(self):
        for version in ("v3", "v4"):
            with self.subTest(version):
                done, said = self.helms.template(version, charts.example(), {}, kube_version="1.28.9")
                self.assertFalse(done)
                self.assertIn("set sidecar.native=false", said)
                ordinary = {"spectap": {"sidecar": {"native": False}}}
                done, said = self.helms.template(version, charts.example(), ordinary, kube_version="1.25.0")
                self.assertTrue(done, said)

    def test_a_cluster_older_than_claimed_is_refused(self):
        for version in ("v3", "v4"):
            done, said = self.helms.template(version, charts.CHART, cases.CHART["gateway"], kube_version="1.24.0")
            self.assertFalse(done)
            self.assertIn("1.25.0", said)

    def test_a_provider_s_version_suffix_is_understood(self):
        done, said = self.helms.template("v3", charts.example(), {}, kube_version="1.29.1-gke.1589000")
        self.assertTrue(done, said)
