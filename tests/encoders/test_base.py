"""What holds for every encoding: shapes, symmetry, gradients, independence of the batch, save and load."""

from __future__ import annotations

import io

import pytest
import torch
from helpers.encoding_cases import batch_of, encoder_config, graphs
from torch import Tensor
from torch_geometric.data import Data

from graphgps_pearl.config.schema import SCHEMA
from graphgps_pearl.contracts import EncoderOutput
from graphgps_pearl.encoders import POSITIONAL_ENCODERS, FeatureEncoder, required_transforms
from graphgps_pearl.errors import DataError
from graphgps_pearl.networks import build
from graphgps_pearl.testing import assert_batch_invariant, assert_equivariant

# Every encoding with every kind of network it may have inside.
VARIANTS: dict[str, tuple[str, ...]] = {
    "RPEARL": (),
    "BPEARL": (),
    "RWSE": (),
    "RWSE MLP": ("posenc_RWSE.model", "MLP", "posenc_RWSE.layers", 2),
    "LapPE": (),
    "LapPE Transformer": ("posenc_LapPE.model", "Transformer", "posenc_LapPE.layers", 1),
    "LapPE BatchNorm": ("posenc_LapPE.raw_norm_type", "BatchNorm", "posenc_LapPE.eigen.max_freqs", 0),
    "SignNet": (),
    "SignNet MLP": ("posenc_SignNet.model", "MLP"),
    "SignNet full": ("posenc_SignNet.eigen.max_freqs", 0),
    "SignNet largest": ("posenc_SignNet.eigen.which", "largest"),
    "SPE": (),
    "SPE DeepSet smallest": ("posenc_SPE.model", "DeepSet", "posenc_SPE.eigen.max_freqs", 4),
    "BasisNet": (),
    "BasisNet full": ("posenc_BasisNet.eigen.max_freqs", 0),
    "BasisNet largest": ("posenc_BasisNet.eigen.which", "largest"),
    "EquivStableLapPE": (),
    "EquivStableLapPE BatchNorm": ("posenc_EquivStableLapPE.raw_norm_type", "BatchNorm"),
    "GSN": (),
    "GSN MLP": ("posenc_GSN.model", "MLP", "posenc_GSN.max_clique", 0),
    "RandomID": (),
}
ALL = pytest.mark.parametrize("variant", VARIANTS)


def prepared(variant: str, *overrides: object) -> tuple[FeatureEncoder, list[Data]]:
    """A seeded encoder that has seen a training batch (so running statistics moved), and the graphs."""
    cfg = encoder_config(f"TypeDictNode+{variant.split()[0]}", *VARIANTS[variant], *overrides)
    torch.manual_seed(0)
    encoder = FeatureEncoder(cfg, dim_in=1)
    data = graphs(required_transforms(cfg))
    encoder(batch_of(data))
    return encoder, data


def encoding(encoder: FeatureEncoder, data: list[Data], name: str) -> Tensor:
    """The rows of the encoding alone."""
    batch = encoder(batch_of(data))
    return batch[f"pe_{name}"]


def stored(variant: str) -> tuple[object, ...]:
    """Settings that make the encoding visible as ``batch.pe_<name>``."""
    name = variant.split()[0]
    return () if name == "EquivStableLapPE" else (f"posenc_{name}.pass_as_var", True)


def test_the_variants_cover_every_encoding() -> None:
    assert {variant.split()[0] for variant in VARIANTS} == set(POSITIONAL_ENCODERS)
    groups = {key.split(".")[0] for key, entry in SCHEMA.items() if key.startswith("posenc_") and entry.used}
    assert groups == {f"posenc_{name}" for name in (*POSITIONAL_ENCODERS, "GraphormerBias")}


@ALL
def test_shapes_and_finite_values_on_awkward_graphs(variant: str) -> None:
    encoder, data = prepared(variant, *stored(variant))
    name = variant.split()[0]
    for mode in (True, False):
        batch = encoder.train(mode)(batch_of(data))
        assert batch.x.shape == (batch.num_nodes, 32) and torch.isfinite(batch.x).all()
        pe = batch[f"pe_{name}"]
        assert torch.isfinite(pe).all()
        if name != "EquivStableLapPE":
            assert torch.equal(batch.x[:, -pe.size(1) :], pe)


@ALL
def test_the_encoding_commutes_with_permutations(variant: str) -> None:
    name = variant.split()[0]
    encoder, data = prepared(variant, *stored(variant))
    encoder.eval()

    def rows(graph: Data) -> Tensor:
        if name in ("RPEARL", "RandomID"):  # commute when the samples move along
            module = encoder.node_encoder.encoders[1].encoding
            return module(graph.edge_index, None, graph.num_nodes, graph.samples)
        for key in list(graph.to_dict()):
            if key.startswith("eig"):
                graph[key] = graph[key].flatten()
        return encoding(encoder, [graph], name)

    for i, graph in enumerate(data):
        width = 5 if name == "RPEARL" else 1
        graph.samples = torch.randn(graph.num_nodes, width, generator=torch.Generator().manual_seed(i))
        for key in list(
            graph.to_dict()
        ):  # stored flat; as matrices, the check knows that eigenvectors are node rows
            if key.startswith("eig"):
                graph[key] = graph[key].view(graph.num_nodes if key.startswith("eigvecs") else 1, -1)
        assert_equivariant(rows, graph)


@ALL
def test_every_parameter_gets_a_gradient(variant: str) -> None:
    cfg = encoder_config(f"TypeDictNode+{variant.split()[0]}", *VARIANTS[variant])
    torch.manual_seed(0)
    model = build(cfg, 1, 1)
    prediction, _ = model(batch_of(graphs(required_transforms(cfg))))
    (prediction * torch.randn(prediction.shape)).sum().backward()
    silent = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert silent == []


@ALL
def test_in_evaluation_a_graph_does_not_see_the_batch(variant: str) -> None:
    name = variant.split()[0]
    encoder, data = prepared(variant, *stored(variant))
    encoder.eval()
    assert_batch_invariant(lambda batch: encoder(batch)[f"pe_{name}"], data)


@ALL
def test_evaluation_repeats_itself_and_moves_no_random_state(variant: str) -> None:
    name = variant.split()[0]
    encoder, data = prepared(variant, *stored(variant))
    encoder.eval()
    before = torch.get_rng_state()
    first = encoding(encoder, data, name)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, encoding(encoder, data, name))


@ALL
def test_training_is_governed_by_the_seed(variant: str) -> None:
    name = variant.split()[0]
    encoder, data = prepared(variant, *stored(variant))
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(encoding(encoder, data, name))
    assert torch.equal(draws[0], draws[1])
    random = name in ("RPEARL", "RandomID", "LapPE")
    assert torch.equal(draws[0], draws[2]) is not random


@ALL
def test_saved_weights_load_without_pickled_code(variant: str) -> None:
    encoder, data = prepared(variant)
    file = io.BytesIO()
    torch.save(encoder.state_dict(), file)
    file.seek(0)
    torch.manual_seed(99)
    other = FeatureEncoder(encoder_config(f"TypeDictNode+{variant.split()[0]}", *VARIANTS[variant]), dim_in=1)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(encoder.eval()(batch_of(data)).x, other.eval()(batch_of(data)).x)


@ALL
def test_double_precision(variant: str) -> None:
    encoder, data = prepared(variant)
    assert encoder.double()(batch_of(data)).x.dtype == torch.float64


@ALL
def test_a_training_batch_of_one_node(variant: str) -> None:
    encoder, data = prepared(variant)
    single = [graph for graph in data if graph.num_nodes == 1]
    assert torch.isfinite(encoder.train()(batch_of(single)).x).all()


@ALL
def test_injected_into_every_layer_it_leaves_x_to_the_data(variant: str) -> None:
    name = variant.split()[0]
    if name == "EquivStableLapPE":
        pytest.skip("acts on edges: it has no columns to inject")
    encoder, data = prepared(variant, f"posenc_{name}.inject", "every_layer")
    batch = encoder.eval()(batch_of(data))
    plain = encoder.node_encoder.encoders[0](batch_of(data))
    assert torch.equal(batch.x, plain.x) and batch.x.size(1) == 32
    assert torch.equal(EncoderOutput.of(batch).per_layer, batch[f"pe_{name}"])


@ALL
def test_alone_it_widens_the_raw_features(variant: str) -> None:
    name = variant.split()[0]
    cfg = encoder_config(name, *VARIANTS[variant])
    encoder = FeatureEncoder(cfg, dim_in=1)
    batch = encoder(batch_of(graphs(required_transforms(cfg))))
    assert batch.x.shape == (batch.num_nodes, 32)
    assert encoder.node_encoder.encoders[0].linear_x.in_features == 1


def test_without_free_columns_the_encoding_is_all_there_is() -> None:
    cfg = encoder_config("RandomID", "posenc_RandomID.dim_pe", 32, "posenc_RandomID.pass_as_var", True)
    encoder = FeatureEncoder(cfg, dim_in=1).eval()
    batch = encoder(batch_of(graphs()))
    assert torch.equal(batch.x, batch.pe_RandomID)


def test_missing_precomputed_values_say_what_to_do() -> None:
    encoder = FeatureEncoder(encoder_config("TypeDictNode+RWSE"), dim_in=1)
    with pytest.raises(DataError, match="RWSE needs the precomputed 'pestat_RWSE'"):
        encoder(batch_of(graphs()))


def test_eigenvectors_prepared_with_other_settings_are_refused() -> None:
    old = required_transforms(encoder_config("TypeDictNode+LapPE", "posenc_LapPE.eigen.max_freqs", 3))
    encoder = FeatureEncoder(encoder_config("TypeDictNode+LapPE"), dim_in=1)
    with pytest.raises(DataError, match=r"posenc_LapPE.eigen needs .* prepare the data again"):
        encoder(batch_of(graphs(old)))
