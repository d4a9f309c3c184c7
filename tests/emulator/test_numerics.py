"""The stored forms: kernels and NumPy codecs agree on every pattern, and with outside values."""

from __future__ import annotations

import numpy as np
import pytest

from spyrec.emulator.choices import Numerics
from spyrec.emulator.kernels.codec import DECODERS, ENCODERS
from spyrec.emulator.numerics import Codec, ElementStorage, codec_of, constant_value, e4m3_values
from spyrec.hardware.dtypes import DeviceFormat

CODECS = [Codec(ElementStorage.DL16, 2), Codec(ElementStorage.HALF, 2), Codec(ElementStorage.E4M3, 1)]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.storage.name)
def test_kernel_and_numpy_decode_every_pattern_alike(codec: Codec) -> None:
    patterns = np.arange(1 << (8 * codec.word_bytes)).astype(codec.carrier)
    values = np.empty(len(patterns), np.float32)
    DECODERS[codec.storage.value](patterns.ctypes.data, codec.word_bytes, len(patterns), values.ctypes.data)
    np.testing.assert_array_equal(values, codec.decode(patterns).astype(np.float32))


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.storage.name)
def test_kernel_and_numpy_round_alike_at_and_around_every_tie(codec: Codec) -> None:
    known = codec.decode(np.arange(1 << (8 * codec.word_bytes)).astype(codec.carrier))
    known = np.unique(known[np.isfinite(known)])
    middle = ((known[1:] + known[:-1]) / 2).astype(np.float32)
    edges = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 449, 464, 480, 65504, 65519, 65520, 1e-45, 1e38], np.float32
    )
    single = known.astype(np.float32)
    values = np.concatenate(
        [
            single,
            middle,
            np.nextafter(middle, np.float32(np.inf)),
            np.nextafter(middle, np.float32(-np.inf)),
            edges,
            -edges,
        ]
    )
    stored = np.empty(len(values), codec.carrier)
    ENCODERS[codec.storage.value](stored.ctypes.data, codec.word_bytes, len(values), values.ctypes.data)
    want = codec.encode(values.astype(np.float64))
    if codec.storage is ElementStorage.HALF:
        # NumPy keeps a NaN's payload and sign; which NaN is stored is no one's concern.
        stored, want = stored[~np.isnan(values)], want[~np.isnan(values)]
    np.testing.assert_array_equal(stored, want)


def test_rounding_is_to_the_nearest_value() -> None:
    values = np.random.default_rng(0).standard_normal(2000) * 100
    for codec in CODECS:
        known = codec.decode(np.arange(1 << (8 * codec.word_bytes)).astype(codec.carrier))
        known = known[np.isfinite(known)]
        stored = codec.decode(codec.encode(np.clip(values, -448, 448)))
        distance = np.abs(stored - np.clip(values, -448, 448))
        nearest = np.array([np.abs(known - value).min() for value in np.clip(values, -448, 448)])
        np.testing.assert_array_equal(distance, nearest)


def test_e4m3_has_the_published_landmarks() -> None:
    values = e4m3_values()
    assert (values[0x7E], values[0x08], values[0x01], values[0x38]) == (448.0, 2.0**-6, 2.0**-9, 1.0)
    assert np.isnan(values[0x7F])
    assert np.isnan(values[0xFF])


def test_constants_decode_as_the_device_reads_them() -> None:
    assert constant_value(DeviceFormat.SEN169_FP16, 15872) == 1.0
    assert constant_value(DeviceFormat.SEN169_FP16, 17152) == 6.0
    assert constant_value(DeviceFormat.SEN169_FP16, 0xFFFF) == -np.inf
    assert constant_value(DeviceFormat.IEEE_FP32, 0x3FC00000) == 1.5


def test_only_dlfloat_changes_with_the_numerics() -> None:
    for numerics, storage in (
        (Numerics.DL16, ElementStorage.DL16),
        (Numerics.IEEE, ElementStorage.HALF),
        (Numerics.F32, ElementStorage.SINGLE),
    ):
        assert codec_of(DeviceFormat.SEN169_FP16, numerics).storage is storage
        assert codec_of(DeviceFormat.IEEE_FP32, numerics) == Codec(ElementStorage.SINGLE, 4)
        assert codec_of(DeviceFormat.SEN143_FP8, numerics) == Codec(ElementStorage.E4M3, 1)
