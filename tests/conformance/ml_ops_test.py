"""ai.onnx.ml as scikit-learn's exporters use it: one node each, compared with ONNX Runtime on the same model."""

import unittest

import numpy as np
from onnx import helper

from contrib_ops_test import PeerCase, floats, info

ML = "ai.onnx.ml"


def tree_nodes(trees):
    """Attributes of full binary trees given as [(feature, value, mode, yes, no) or None for a leaf]."""
    rows = [(tree, number, *(node or (0, 0.0, "LEAF", 0, 0))) for tree, nodes in enumerate(trees)
            for number, node in enumerate(nodes)]
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    return {f"nodes_{name}": list(column) for name, column in zip(names, zip(*rows))}


FOREST = [[(0, 0.1, "BRANCH_LEQ", 1, 2), None, (2, -0.3, "BRANCH_GT", 3, 4), None, None],
          [(1, 0.0, "BRANCH_LT", 1, 2), None, None]]
LEAVES = [(0, 1), (0, 3), (0, 4), (1, 1), (1, 2)]


class MlOps(PeerCase):
    def check_ml(self, op, inputs, outputs=1, **attributes):
        self.check(op, inputs, outputs, domain=ML, **attributes)

    def test_preprocessing(self):
        x = floats(4, 3)
        self.check_ml("Scaler", [x], offset=[0.5, 1.0, -1.0], scale=[2.0, 0.5, 1.0])
        for norm in ("MAX", "L1", "L2"):
            self.check_ml("Normalizer", [np.abs(x)], norm=norm)
        self.check_ml("Binarizer", [x], threshold=0.25)
        with_gaps = x.copy()
        with_gaps[1, 2] = np.nan
        self.check_ml("Imputer", [with_gaps], imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan"))
        self.check_ml("ArrayFeatureExtractor", [x, np.array([2, 0], np.int64)])
        self.check_ml("FeatureVectorizer", [x, floats(4, 2)], inputdimensions=[3, 2])

    def test_labels(self):
        x = np.array([3, 1, 7, 2], np.int64)
        self.check_ml("OneHotEncoder", [x], cats_int64s=[1, 2, 3], zeros=1)
        self.check_ml("LabelEncoder", [x], keys_int64s=[1, 2, 3], values_int64s=[10, 20, 30], default_int64=-5)
        self.check_ml("LabelEncoder", [x], keys_int64s=[1, 2, 3], values_floats=[0.5, 1.5, 2.5])
        # Keys close together, with gaps and below nothing; far apart; at both ends of the type.
        ends = [-2**63, 2**63 - 1]
        x = np.array([[-3, -2, 0, 5, 6], [100, ends[0], ends[1], -4, 2**62]], np.int64)
        for keys in ([5, -3, 0, 2], [0, 2**62, -3], ends + [5], [2**63 - 1, 2**63 - 3], [-2**63, -2**63 + 2]):
            self.check_ml("LabelEncoder", [x], keys_int64s=keys, values_int64s=list(range(10, 10 + len(keys))), default_int64=-5)
        keys = list(range(1000, 3000, 2))
        self.check_ml("LabelEncoder", [np.arange(900, 3100, 7)], keys_int64s=keys, values_floats=[k / 4 for k in keys], default_float=0.5)

    def test_linear_models(self):
        x = floats(5, 3)
        self.check_ml("LinearRegressor", [x], coefficients=[0.5, -1.0, 2.0, 1.0, 0.0, -2.0], intercepts=[0.1, 0.2], targets=2)
        weights = [0.5, -1.0, 2.0, 1.0, 0.0, -2.0, 0.3, 0.3, 0.3]
        self.check_ml("LinearClassifier", [x], 2, coefficients=weights, intercepts=[0.1, 0.2, 0.0],
                      classlabels_ints=[4, 5, 9], multi_class=1, post_transform="SOFTMAX")
        for transform in ("NONE", "LOGISTIC"):
            self.check_ml("LinearClassifier", [x], 2, coefficients=weights[:3], intercepts=[0.1], classlabels_ints=[0, 1],
                          post_transform=transform)

    def test_probit(self):
        chances = np.linspace(0.02, 0.98, 25, dtype=np.float32)[:, None]
        self.check_ml("LinearRegressor", [chances], coefficients=[1.0], intercepts=[0.0], targets=1, post_transform="PROBIT")

    def test_support_vectors(self):
        x, vectors = floats(5, 3), floats(4, 3).ravel().tolist()
        for kernel in ("LINEAR", "RBF", "POLY", "SIGMOID"):
            self.check_ml("SVMRegressor", [x], kernel_type=kernel, kernel_params=[0.5, 0.25, 2.0], n_supports=4, rho=[0.3],
                          support_vectors=vectors, coefficients=[0.5, -1.0, 0.25, 1.0])

    def test_classes_by_support_vectors(self):
        x = floats(9, 3)
        for counts in ([2, 3], [2, 1, 3]):
            vectors, classes = sum(counts), len(counts)
            pairs = classes * (classes - 1) // 2
            for kernel in ("LINEAR", "RBF"):
                self.check_ml("SVMClassifier", [x], 2, kernel_type=kernel, kernel_params=[0.5, 0.25, 2.0],
                              classlabels_ints=[3, 5, 8][:classes], vectors_per_class=counts,
                              support_vectors=floats(vectors, 3).ravel().tolist(),
                              coefficients=floats((classes - 1) * vectors).tolist(), rho=floats(pairs).tolist())

    def test_probabilities_by_support_vectors(self):
        """Platt's sigmoids coupled by the problem of Wu, Lin and Weng (2004), whose minimum is a linear system's solution;
        the operator stops on its way there when no derivative is above 0.005 / classes."""
        x = floats(40, 3)
        for counts in ([2, 3], [2, 1, 3], [2, 2, 1, 3]):
            classes, total = len(counts), sum(counts)
            pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
            vectors, weights = floats(total, 3), floats(classes - 1, total)
            rho, a, b = floats(len(pairs)), -np.abs(floats(len(pairs))), floats(len(pairs))
            kernel = np.exp(-0.5 * ((x[:, None] - vectors) ** 2).sum(-1))
            ends = np.cumsum([0, *counts])
            first = []
            for pair, (i, j) in enumerate(pairs):
                decision = (kernel[:, ends[i]:ends[i + 1]] @ weights[j - 1, ends[i]:ends[i + 1]]
                            + kernel[:, ends[j]:ends[j + 1]] @ weights[i, ends[j]:ends[j + 1]] + rho[pair])
                first.append(np.clip(1 / (1 + np.exp(a[pair] * decision + b[pair])), 1e-7, 1 - 1e-7))
            right = []
            for row in np.array(first, np.float64).T:
                # min sum over pairs of (r_ji p_i - r_ij p_j)^2 with the p adding up to 1: [Q 1; 1' 0] [p; b] = [0; 1]
                system = np.zeros((classes + 1, classes + 1))
                for (i, j), wins in zip(pairs, row):
                    system[i, i] += (1 - wins) ** 2
                    system[j, j] += wins**2
                    system[i, j] = system[j, i] = -wins * (1 - wins)
                system[:classes, classes] = system[classes, :classes] = 1
                right.append(np.linalg.solve(system, [0] * classes + [1])[:classes])
            node = helper.make_node(
                "SVMClassifier", ["x"], ["label", "p"], domain=ML, kernel_type="RBF", kernel_params=[0.5, 0.0, 0.0],
                classlabels_ints=list(range(classes)), vectors_per_class=counts, support_vectors=vectors.ravel().tolist(),
                coefficients=weights.ravel().tolist(), rho=rho.tolist(), prob_a=a.tolist(), prob_b=b.tolist())
            graph = helper.make_graph([node], "svm", [info("x", x)], [helper.make_empty_tensor_value_info(n) for n in ("label", "p")])
            _, ours = self.run_own(graph, {"x": x}, 17, domains=[ML])
            np.testing.assert_allclose(ours.sum(1), 1, atol=1e-6)
            np.testing.assert_allclose(ours, right, atol=0.02)
            self.check_ml("SVMClassifier", [x], 2, kernel_type="RBF", kernel_params=[0.5, 0.0, 0.0],
                          classlabels_ints=list(range(classes)), vectors_per_class=counts,
                          support_vectors=vectors.ravel().tolist(), coefficients=weights.ravel().tolist(), rho=rho.tolist(),
                          prob_a=a.tolist(), prob_b=b.tolist())

    def test_classes_without_support_vectors(self):
        x = floats(30, 3)
        for weights in (floats(6), np.abs(floats(6))):
            for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
                self.check_ml("SVMClassifier", [x], 2, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], classlabels_ints=[3, 5],
                              coefficients=weights.tolist(), rho=[0.125], post_transform=transform)
        weights, rho = floats(3, 3), [0.25, 0.5, -0.5]
        options = {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0], "classlabels_ints": [3, 5, 8],
                   "coefficients": weights.ravel().tolist(), "rho": rho}
        self.check_ml("SVMClassifier", [x], 2, **options)
        self.check_ml("SVMClassifier", [x], 2, **{**options, "rho": [-1.5]})
        node = helper.make_node("SVMClassifier", ["x"], ["label", "scores"], domain=ML, **options)
        graph = helper.make_graph([node], "svm", [info("x", x)], [helper.make_empty_tensor_value_info(n) for n in ("label", "scores")])
        label, scores = self.run_own(graph, {"x": x}, 17, domains=[ML])
        np.testing.assert_allclose(scores, x @ weights.T + 0.25, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(label, np.array([3, 5, 8])[(x @ weights.T).argmax(1)])

    def test_one_class_and_no_vectors(self):
        x, vectors = floats(20, 3), floats(4, 3)
        options = {"kernel_type": "RBF", "kernel_params": [0.5, 0.0, 0.0], "support_vectors": vectors.ravel().tolist(),
                   "coefficients": [0.5, 0.25, 1.0, 0.125], "n_supports": 4, "rho": [-0.7]}
        self.check_ml("SVMRegressor", [x], one_class=1, **options)
        sums = np.exp(-0.5 * ((x[:, None] - vectors) ** 2).sum(-1)) @ [0.5, 0.25, 1.0, 0.125] - 0.7
        node = helper.make_node("SVMRegressor", ["x"], ["y"], domain=ML, one_class=1, **options)
        graph = helper.make_graph([node], "svm", [info("x", x)], [helper.make_empty_tensor_value_info("y")])
        (ours,) = self.run_own(graph, {"x": x}, 17, domains=[ML])
        np.testing.assert_array_equal(ours[:, 0], np.where(sums > 0, 1, -1).astype(np.float32))
        self.check_ml("SVMRegressor", [x], kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], coefficients=[0.5, -1.0, 2.0], rho=[0.25], n_supports=0)

    def test_trees(self):
        x = floats(40, 3)
        trees, nodes = [list(column) for column in zip(*LEAVES)]
        self.check_ml("TreeEnsembleRegressor", [x], **tree_nodes(FOREST), n_targets=2, target_ids=[0] * 5 + [1] * 5,
                      target_treeids=2 * trees, target_nodeids=2 * nodes,
                      target_weights=[0.5, 1.0, -0.5, 2.0, 0.25, 1.5, 2.0, 3.0, -1.0, 0.5], base_values=[0.125, 0.25])
        for aggregate in ("MIN", "MAX", "AVERAGE"):
            for transform in ("NONE", "SOFTMAX", "SOFTMAX_ZERO"):
                self.check_ml("TreeEnsembleRegressor", [x], **tree_nodes(FOREST), n_targets=2, target_ids=[0, 0, 0, 0, 0, 1],
                              target_treeids=trees + [0], target_nodeids=nodes + [4], aggregate_function=aggregate,
                              target_weights=[0.5, 1.0, -0.5, 2.0, 0.25, -1.5], post_transform=transform)
        common = {**tree_nodes(FOREST), "class_treeids": trees, "class_nodeids": nodes}
        self.check_ml("TreeEnsembleClassifier", [x], 2, **common, classlabels_int64s=[3, 5, 8], class_ids=[0, 1, 2, 1, 2],
                      class_weights=[0.5, 0.75, 0.25, 0.5, 0.25])
        for transform, weights in (("NONE", [0.1, 0.4, 0.2, 0.3, 0.25]), ("LOGISTIC", [0.5, -1.0, 0.25, 2.0, -0.25]),
                                   ("NONE", [0.5, -1.0, 0.25, 2.0, -0.25])):
            self.check_ml("TreeEnsembleClassifier", [x], 2, **common, classlabels_int64s=[0, 1], class_ids=[0] * 5,
                          class_weights=weights, post_transform=transform)

    def test_trees_of_inner_nodes_and_leaves(self):
        def tensor(name, kind, values):
            return helper.make_tensor(name, kind, [len(values)], values)

        # x0 <= 0.5 ? (x1 in {1, 3} ? leaf 0 : leaf 1) : leaf 2; and a tree of one leaf
        node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain=ML, n_targets=2, tree_roots=[0, 2],
                                nodes_featureids=[0, 1, 0], nodes_splits=tensor("s", 1, [0.5, 0.0, 0.0]),
                                nodes_modes=tensor("m", 2, [0, 6, 0]), nodes_truenodeids=[1, 0, 3], nodes_trueleafs=[0, 1, 1],
                                nodes_falsenodeids=[2, 1, 3], nodes_falseleafs=[1, 1, 1], leaf_targetids=[0, 1, 0, 1],
                                leaf_weights=tensor("w", 1, [5.0, 7.0, 11.0, 0.5]),
                                membership_values=tensor("v", 1, [1.0, 3.0, float("nan")]))
        x = np.array([[0, 1], [0.5, 3], [0, 2], [1, 1]], np.float32)
        graph = helper.make_graph([node], "trees", [info("x", x)], [helper.make_empty_tensor_value_info("y")])
        (ours,) = self.run_own(graph, {"x": x}, 17, domains=[ML])
        np.testing.assert_array_equal(ours, np.array([[5, 0.5], [5, 0.5], [0, 7.5], [11, 0.5]], np.float32))

    def test_a_row_of_missing_values(self):
        x = np.array([[np.nan, 1, 1], [1, np.nan, np.nan]], np.float32)
        trees, nodes = [list(column) for column in zip(*LEAVES)]
        self.check_ml("TreeEnsembleRegressor", [x], **tree_nodes(FOREST), n_targets=1, target_ids=[0] * 5,
                      target_treeids=trees, target_nodeids=nodes, target_weights=[0.5, 1.0, -0.5, 2.0, 0.25],
                      nodes_missing_value_tracks_true=[1, 0, 0, 0, 0, 1, 0, 0])

    def test_cells_of_boxes(self):
        boxes = np.array([[0, 0, 0, 6, 8], [1, 2, 1, 5, 7], [1, 3, 3, 3, 3], [0, -4, -9, -2, -3], [0, 1, 2, 30, 40]], np.float32)
        for scale in (1.0, 0.6):
            self.check("MaxRoiPool", [floats(2, 3, 9, 7), boxes], domain="", pooled_shape=[3, 2], spatial_scale=scale)

    def test_maps_are_the_matrix_of_scores(self):
        x = floats(3, 2)
        graph = helper.make_graph([helper.make_node("ZipMap", ["x"], ["y"], domain=ML, classlabels_int64s=[0, 1])], "zip",
                                  [info("x", x)], [helper.make_empty_tensor_value_info("y")])
        ours = self.run_own(graph, {"x": x}, 17, domains=[ML])
        np.testing.assert_array_equal(ours[0], x)


if __name__ == "__main__":
    unittest.main()
