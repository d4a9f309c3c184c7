"""Ops of PyTorch that a graph cannot have, each with the reason: who names one is told why, not that it is unknown.

``REFUSED_OPS`` and ``OTHER_NAMES`` together with the catalogue answer for every op that PyTorch tags as core ATen;
``REFUSED_ARGUMENTS`` says what of an op that is there PyTorch takes, and a graph does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_SHAPE = "the shape of its result depends on the numbers of its operands, and a program is compiled for known shapes"
_RANDOM = "it draws random numbers, and a graph gives the same results of the same inputs"
_COMPLEX = "there are no complex numbers"
_MEMORY = "it names places in memory, and a value of a graph has elements, but no strides that would place them"
_NUMBER = "it makes a Python number of a tensor, and a graph has tensors alone"
_MATRIX = "it is a factorization of matrices, whose steps depend on the numbers"
_SERIES = "it is a power series of a matrix, and how many terms it takes depends on the numbers"
_SPARSE = "tensors are dense"
_BETWEEN = "of places between elements those of images of two dims are read alone, by grid_sampler_2d"
_TRAINING = "it computes gradients or learns from a batch, and a graph is of inference"
_SIZES = "it reads sizes while a program runs, and a graph states them in its dims"

_REASONS = {
    _SHAPE: "nonzero nonzero_numpy argwhere unique unique_consecutive unique_dim _unique _unique2 masked_select "
    "bincount combinations histogram",
    _RANDOM: "rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal uniform "
    "exponential poisson native_dropout rrelu_with_noise",
    _COMPLEX: "fft_fft fft_ifft fft_rfft fft_irfft _fft_r2c _fft_c2r _fft_c2c stft istft complex polar view_as_complex "
    "view_as_real real imag angle conj conj_physical _conj",
    _MEMORY: "as_strided as_strided_copy as_strided_scatter empty_strided set_ data_ptr resize resize_ storage_offset",
    _NUMBER: "item tolist _local_scalar_dense is_nonzero allclose",
    _MATRIX: "svd qr cholesky cholesky_solve inverse det logdet slogdet linalg_svd linalg_qr linalg_eig linalg_eigh "
    "linalg_inv linalg_solve linalg_cholesky linalg_det linalg_lstsq linalg_lu lu_solve triangular_solve",
    _SERIES: "matrix_exp linalg_matrix_exp",
    _TRAINING: "_adaptive_avg_pool2d_backward _native_batch_norm_legit avg_pool2d_backward convolution_backward "
    "embedding_dense_backward max_pool2d_with_indices_backward native_group_norm_backward native_layer_norm_backward",
    _SIZES: "sym_is_contiguous sym_numel sym_size sym_storage_offset sym_stride",
    _BETWEEN: "grid_sampler_3d",
    _SPARSE: "to_sparse to_dense sparse_coo_tensor coalesce _sparse_mm",
}

REFUSED_OPS: Mapping[str, str] = MappingProxyType(
    {name: reason for reason, names in _REASONS.items() for name in names.split()}
)
"""Why an op of PyTorch is none of a graph, by its name; lower case, the end of a sentence."""

OTHER_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "_adaptive_avg_pool2d": ("adaptive_avg_pool2d",),
        "_adaptive_avg_pool3d": ("adaptive_avg_pool3d",),
        "_cdist_forward": ("cdist",),
        "_embedding_bag": ("embedding_bag",),
        "_log_softmax": ("log_softmax",),
        "_native_batch_norm_legit_no_training": ("batch_norm",),
        "_pdist_forward": ("pdist",),
        "_softmax": ("softmax",),
        "_to_copy": ("to",),
        "alias": ("clone",),
        "constant_pad_nd": ("pad",),
        "convolution": ("conv1d", "conv2d", "conv_transpose2d"),
        "copy": ("to", "expand"),
        "fill": ("full",),
        "fold": ("col2im",),
        "grid_sample": ("grid_sampler_2d",),
        "native_group_norm": ("group_norm",),
        "native_layer_norm": ("layer_norm",),
        "reflection_pad1d": ("pad",),
        "reflection_pad2d": ("pad",),
        "reflection_pad3d": ("pad",),
        "replication_pad2d": ("pad",),
        "replication_pad3d": ("pad",),
        "scaled_mm": ("_scaled_mm",),
        "upsample_bilinear2d": ("interpolate",),
        "upsample_nearest2d": ("interpolate",),
    }
)
"""The ops that say the same, by a name that PyTorch has beside its public function."""

PLACEMENT_ARGUMENTS = ("copy", "device", "inplace", "layout", "memory_format", "non_blocking", "pin_memory")
"""Arguments of PyTorch's that say where a result lies, and how; refused of every op, by name (SPY0121)."""

REFUSED_ARGUMENTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "adaptive_avg_pool2d": ("output_size=[null, 1]",),
        "adaptive_avg_pool3d": ("output_size=[null, 1, 1]",),
        "adaptive_max_pool1d": ("return_indices=true",),
        "adaptive_max_pool2d": ("return_indices=true", "output_size=[null, 1]"),
        "adaptive_max_pool3d": ("return_indices=true", "output_size=[null, 1, 1]"),
        "addmm": ("out_dtype",),
        "avg_pool1d": ("divisor_override",),
        "baddbmm": ("out_dtype",),
        "batch_norm": ("training=true",),
        "bmm": ("out_dtype",),
        "cdist": ("compute_mode",),
        "dropout": ("training=true",),
        "embedding": ("max_norm",),
        "embedding_bag": ("max_norm",),
        "grid_sampler_2d": ("interpolation_mode=2", "padding_mode=2"),
        "interpolate": ('mode="bicubic"', 'mode="area"', "antialias=true"),
        "linspace": ('dtype="int64"',),
        "max_pool1d": ("return_indices=true",),
        "max_pool2d": ("return_indices=true",),
        "max_pool3d": ("return_indices=true",),
        "mm": ("out_dtype",),
        "norm": ('p="fro"', 'p="nuc"'),
        "one_hot": ("num_classes=-1",),
        "scaled_dot_product_attention": ("dropout_p",),
        "searchsorted": ("sorter",),
        "view": ("dtype",),
    }
)
"""Arguments that are refused, by name or with the value shown (SPY0121 or SPY0211)."""


def refusal(found: str) -> tuple[str, str] | None:
    """Return (name, reason) of an op that is refused, as graphs or exporters name it: ``aten.nonzero.default``."""
    parts = re.split(r"[.:]+", found[:128])
    name = next((part for part in [found, *parts] if part in REFUSED_OPS), None)
    return None if name is None else (name, REFUSED_OPS[name])
