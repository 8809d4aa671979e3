"""What a stored module may consist of: lists of layers, functions and methods that only calculate.

A file can name an operation only by a key of these lists: no name in it is ever looked up in a Python module or an object. An
operation is left out if it changes a value in place, draws at random, reads a file, or gives a result whose shape depends on the values.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

__all__ = [
    "ARITHMETIC",
    "ATTRIBUTES",
    "DTYPES",
    "FIXED",
    "FUNCTIONS",
    "LAYERS",
    "METHODS",
    "WORDS",
    "key_of_function",
    "settings_of",
]

_POOL = ("kernel_size", "stride", "padding")
_CONVOLUTION = (
    *("in_channels", "out_channels", "kernel_size", "stride", "padding"),
    *("dilation", "groups", "bias", "padding_mode"),
)
_NORM = ("num_features", "eps", "momentum", "affine", "track_running_stats")
_RECURRENT = (
    *("input_size", "hidden_size", "num_layers", "bias", "batch_first"),
    *("dropout", "bidirectional"),
)

# Layers by name, each with the constructor arguments that, with the weights, determine it.
LAYERS: Mapping[str, tuple[type[nn.Module], tuple[str, ...]]] = {
    layer.__name__: (layer, settings)
    for layer, settings in (
        (nn.Linear, ("in_features", "out_features", "bias")),
        (nn.Bilinear, ("in1_features", "in2_features", "out_features", "bias")),
        *((layer, _CONVOLUTION) for layer in (nn.Conv1d, nn.Conv2d, nn.Conv3d)),
        *(
            (layer, (*_CONVOLUTION, "output_padding"))
            for layer in (nn.ConvTranspose1d, nn.ConvTranspose2d)
        ),
        *((layer, _NORM) for layer in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)),
        *((layer, _NORM) for layer in (nn.InstanceNorm1d, nn.InstanceNorm2d)),
        (nn.GroupNorm, ("num_groups", "num_channels", "eps", "affine")),
        (nn.LayerNorm, ("normalized_shape", "eps", "elementwise_affine", "bias")),
        (nn.RMSNorm, ("normalized_shape", "eps", "elementwise_affine")),
        (nn.LocalResponseNorm, ("size", "alpha", "beta", "k")),
        *(
            (layer, (*_POOL, "dilation", "ceil_mode", "return_indices"))
            for layer in (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)
        ),
        (nn.AvgPool1d, (*_POOL, "ceil_mode", "count_include_pad")),
        *(
            (layer, (*_POOL, "ceil_mode", "count_include_pad", "divisor_override"))
            for layer in (nn.AvgPool2d, nn.AvgPool3d)
        ),
        *((layer, ("output_size",)) for layer in (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d)),
        *((layer, ("output_size",)) for layer in (nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d)),
        *(
            (layer, ())
            for layer in (
                *(nn.Identity, nn.ReLU, nn.ReLU6, nn.SELU, nn.SiLU, nn.Mish, nn.Sigmoid, nn.Tanh),
                *(nn.Softsign, nn.Tanhshrink, nn.Hardswish, nn.Hardsigmoid, nn.LogSigmoid),
            )
        ),
        (nn.LeakyReLU, ("negative_slope",)),
        (nn.ELU, ("alpha",)),
        (nn.CELU, ("alpha",)),
        (nn.GELU, ("approximate",)),
        (nn.Softplus, ("beta", "threshold")),
        (nn.Hardtanh, ("min_val", "max_val")),
        (nn.Threshold, ("threshold", "value")),
        (nn.PReLU, ("num_parameters",)),
        *((layer, ("dim",)) for layer in (nn.Softmax, nn.LogSoftmax, nn.GLU)),
        (nn.Flatten, ("start_dim", "end_dim")),
        (nn.Unflatten, ("dim", "unflattened_size")),
        *(
            (layer, ("p",))
            for layer in (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
        ),
        (nn.Embedding, ("num_embeddings", "embedding_dim", "padding_idx", "max_norm")),
        *((layer, ("padding",)) for layer in (nn.ZeroPad1d, nn.ZeroPad2d, nn.ReflectionPad2d)),
        *((layer, ("padding", "value")) for layer in (nn.ConstantPad1d, nn.ConstantPad2d)),
        (nn.Upsample, ("size", "scale_factor", "mode", "align_corners")),
        *((layer, ("upscale_factor",)) for layer in (nn.PixelShuffle,)),
        *((layer, _RECURRENT) for layer in (nn.LSTM, nn.GRU)),
        (
            nn.MultiheadAttention,
            ("embed_dim", "num_heads", "dropout", "bias", "kdim", "vdim", "batch_first"),
        ),
    )
}  # fmt: skip
# Settings that a stored layer may have with one value only: other values change weights in place, or give several results.
_FIXED = {"max_norm": None, "return_indices": False}


def settings_of(layer: nn.Module) -> dict[str, Any]:
    """Return the constructor arguments from which a layer can be built again, without its weights.

    Raises
    ------
    ValueError
        If a setting has a value that is not allowed in a stored layer.
    """
    settings = {}
    for name in LAYERS[type(layer).__name__][1]:
        value = getattr(layer, name, None)
        if name == "bias" and not isinstance(value, bool):
            value = _has_bias(layer)
        if name in _FIXED and value != _FIXED[name]:
            raise ValueError(f"its {name} is {value}")
        settings[name] = value
    return settings


def _has_bias(layer: nn.Module) -> bool:
    if isinstance(layer, nn.MultiheadAttention):
        return layer.in_proj_bias is not None
    return getattr(layer, "bias", None) is not None


def _of(place: object, prefix: str, names: Iterable[str]) -> dict[str, Callable[..., Any]]:  # fmt: skip
    return {f"{prefix}.{name}": getattr(place, name) for name in names}


# Operators that also work on Python's integers and tuples, so that their arguments are checked first.
ARITHMETIC = _of(
    operator,
    "operator",
    (
        *("add", "sub", "mul", "truediv", "floordiv", "neg", "pow"),
        *("lt", "le", "gt", "ge", "eq", "ne"),
    ),
)
_BOTH = (
    *("abs", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "square", "sin", "cos", "sign", "reciprocal"),
    *("add", "sub", "mul", "div", "neg", "pow", "maximum", "minimum", "clamp"),
    *("matmul", "bmm", "where", "flatten", "squeeze", "unsqueeze", "reshape", "transpose", "permute"),
    *("relu", "sigmoid", "tanh", "softmax", "log_softmax", "logsumexp", "cumsum"),
    *("sum", "mean", "var", "std", "amax", "amin", "chunk", "split", "narrow", "flip", "roll", "masked_fill"),
)  # fmt: skip
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **ARITHMETIC,
    **_of(operator, "operator", ("getitem", "matmul")),
    **_of(
        torch,
        "torch",
        (
            *_BOTH,
            *("cat", "stack", "einsum", "outer", "erf"),
            *("zeros_like", "ones_like", "index_select", "gather", "swapaxes"),
        ),
    ),
    **_of(
        nn.functional,
        "functional",
        (
            *("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus"),
            *("sigmoid", "tanh", "hardtanh", "hardswish", "hardsigmoid", "logsigmoid", "softsign", "glu"),
            *("softmax", "log_softmax", "normalize", "linear", "bilinear", "conv1d", "conv2d", "conv3d"),
            *("layer_norm", "group_norm", "rms_norm", "pad", "interpolate", "one_hot"),
            *("max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d"),
            *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d"),
            "scaled_dot_product_attention",
        ),
    ),
}  # fmt: skip
METHODS: Mapping[str, Callable[..., Any]] = {
    name: getattr(Tensor, name)
    for name in (
        *_BOTH,
        *("view", "expand", "repeat", "contiguous", "t", "size", "dim", "unflatten"),
        *("float", "long", "int", "bool", "to", "type_as", "detach", "clone", "view_as", "expand_as"),
        *("eq", "ne", "lt", "le", "gt", "ge", "index_select", "gather", "swapaxes"),
    )
}  # fmt: skip
ATTRIBUTES: Mapping[str, Callable[[Tensor], Any]] = {
    "shape": lambda value: value.shape,
    "ndim": lambda value: value.ndim,
    "T": lambda value: value.T,
    "mT": lambda value: value.mT,
    "dtype": lambda value: value.dtype,
}
DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "float64": torch.float64,
    "int32": torch.int32,
    "int64": torch.int64,
    "bool": torch.bool,
}

# Operations that take a string, such as the mode of a padding; a string anywhere else could only name a device.
WORDS = frozenset(
    [
        *("torch.einsum", "torch.div", "div", "functional.gelu"),
        *("functional.pad", "functional.interpolate"),
    ]
)
# Arguments that may have one value only: other values change tensors in place, or draw at random.
FIXED: Mapping[str, object] = {"inplace": False, "out": None, "dropout_p": 0.0}

_IN_PLACE: Mapping[Any, str] = {
    operator.iadd: "operator.add",
    operator.isub: "operator.sub",
    operator.imul: "operator.mul",
    operator.itruediv: "operator.truediv",
}
_KEYS: Mapping[Any, str] = {
    **{FUNCTIONS[key]: key for key in reversed([*FUNCTIONS])},
    **_IN_PLACE,
}


def key_of_function(function: object) -> str | None:
    """Return the key of a function, or None if it has none; an in-place operator has the key of the plain one.

    Examples
    --------
    >>> key_of_function(torch.relu), key_of_function(eval)
    ('torch.relu', None)
    """
    try:
        return _KEYS.get(function)
    except TypeError:  # the function is not hashable
        return None
