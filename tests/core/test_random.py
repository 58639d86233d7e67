"""The generator and its distributions against numbers recorded from PyTorch 2.13 on a CPU."""

import copy
import math
import pickle
import threading
import zlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.core import dtype as dtypes
from pullback.core import random as randoms
from pullback.core import random_integers
from pullback.core.random import Generator
from pullback.core.random_gradients import dirichlet_grad, standard_gamma_grad
from pullback.core.random_integers import fill_random, fill_random_range, multinomial, randperm, shuffle
from pullback.core.random_rejection import binomial, dirichlet, poisson, standard_gamma
from pullback.core.random_streams import (
    fill_bernoulli,
    fill_cauchy,
    fill_dropout,
    fill_exponential,
    fill_geometric,
    fill_log_normal,
    fill_normal,
    fill_uniform,
    fused,
    normal,
    rrelu_noise,
)

FILLS = {
    "uniform": fill_uniform, "normal": fill_normal, "bernoulli": fill_bernoulli, "geometric": fill_geometric,
    "exponential": fill_exponential, "cauchy": fill_cauchy, "log_normal": fill_log_normal,
    "random": lambda gen, out, *bounds: fill_random_range(gen, out, *bounds) if bounds else fill_random(gen, out),
}  # fmt: skip
SIZES = (1, 5, 15, 16, 17, 40, 1000)


def seeded(seed: int = 42) -> Generator:
    return Generator().manual_seed(seed)


def checksum(array: np.ndarray) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(array).tobytes()):08x}"


def empty(shape, name: str = "float32") -> np.ndarray:
    return np.empty(shape, dtypes.by_name[name].numpy)


# Seed 123: the checksums of the results for each of SIZES, then of the state after the last.
RECORDED = [
    ("uniform", "float32", (), "e3d32064 633a6f1b e6f1602f d311ffee 92342f64 7318877f 60d94c8e", "f22f758a"),
    ("uniform", "float64", (), "ca43ecc7 82294224 8b3662ed 187511f0 0478a1cf 309d5aad 2716fb9c", "946f4c69"),
    ("uniform", "float16", (), "310636bf 94667439 5c16693e 00b65fd8 663d30bf aa9caadd f8e05274", "f22f758a"),
    ("uniform", "bfloat16", (), "39200f46 7fedab30 ffbb046c 1be4ea9d a2100845 4f6f7ff7 f9411917", "f22f758a"),
    ("uniform", "float32", (-0.3, 1.6), "35224747 0dd28fc4 c960f517 6ea93e07 57092029 59f17900 652b56da", "f22f758a"),
    ("uniform", "float64", (-0.3, 1.6), "76596df2 01bdc224 669ab852 683e7996 8c15931e d5bd5b9e efd969b9", "946f4c69"),
    ("uniform", "bfloat16", (-0.3, 1.6), "ed613099 7825d7e1 fa073c78 a3e1f78b af246943 158297a2 3dac030a", "f22f758a"),
    ("bernoulli", "float32", (0.3,), "2144df1c 916e77fa 6e44399a e61cc69d 54521687 2bac2782 34428e22", "946f4c69"),
    ("bernoulli", "bool", (0.5,), "a505df1b 2de2b81f b53275f6 f16eba47 3a4b5504 102369ae e74fd6c2", "946f4c69"),
    ("geometric", "int64", (0.3,), "ebadd88a 0a599574 c3853179 b66eebb7 d965613a 959e97c6 04044a74", "946f4c69"),
    ("exponential", "float32", (1.7,), "56ba6765 ecea9283 30e1700b 2a4c7be3 8bdf57ce fd9422bf 1312efac", "946f4c69"),
    ("cauchy", "float32", (0.3, 1.7), "f273904e 8ed25729 7ce3b508 bc0eb800 17c414c1 afdf0aee ec53cc00", "946f4c69"),
    ("log_normal", "float32", (0.3, 0.9), "b0c3efbf 96cdae2a 2d7399ad 1b8665dc c10ae279 92f239e1 e5d813a7", "946f4c69"),
    ("random", "int64", (), "d94aa622 c6ca333a 288f61f1 f1cd5c3d c351ae80 60873f66 e40b4d45", "946f4c69"),
    ("random", "float32", (), "013d9f22 13a91750 0adf90b2 c5ef641d cfafdaf5 3d7dcb94 d258ec86", "f22f758a"),
    ("random", "uint8", (), "88073096 eb2fc0dd c7dca3dd 0da5dced bb0988af aa4e8046 6391c302", "f22f758a"),
    ("random", "bool", (), "d202ef8d 7e9e9078 bcc6962f 0e6824d4 53b29164 91f8d9e9 a10d09fb", "f22f758a"),
    ("random", "bfloat16", (), "bd81941b d07e21fe 7a08796d 6960db2e 8caaacc8 40765234 6b59d848", "f22f758a"),
    ("random", "int64", (-5, 1000000), "8c11675b 6143210e 88db3984 dbaa10be a2f19975 16682422 8f4a2a64", "f22f758a"),
    ("random", "int64", (0, 268435456), "ed190dff 7a9c134a ecbf06cd a22ca514 01b94069 c201ac4a 9acb581c", "946f4c69"),
    ("random", "int64", (-(2**62), 2**62),
     "422e6492 10adc7b8 577c3fca 29605fe5 a0222dac 87d72144 2f8a2ff0", "946f4c69"),
    ("random", "int64", (-(2**63), None), "34f22502 35cab280 1c40bc5a 9559f465 db935e22 c5086cb6 6f49d841", "946f4c69"),
    ("random", "float16", (-3, 100), "73a174fe 2688212a e4c0f609 e95c9110 73d741e3 1aea7234 0016542b", "f22f758a"),
    ("random", "uint32", (3, 50), "c9e1efe6 fec30fda 46f584bb ab660319 dc82602f 338667bc 547318b8", "f22f758a"),
    ("normal", "float32", (0.0, 1.0), "ae385372 79d1afc0 4c8ac70b 3f05deb8 1b6df9c9 b1cc0255 a84902b6", "830cae0c"),
    ("normal", "float32", (0.3, 1.7), "78a6eaea 08c2b385 3ba4f936 5927d52f 1a02f8b0 a3bfba8e aa5ee4e0", "830cae0c"),
    ("normal", "float16", (0.0, 1.0), "a002eaa6 142fde35 b42d7253 b0e90adb 4da3d78d 5ef9252a 9efda397", "ec436771"),
    ("normal", "bfloat16", (0.3, 1.7), "75f9cf80 300ee06c 05a4305a 5abb595a c76204a1 6075cbd3 4ed81ac9", "ec436771"),
    ("normal", "complex64", (0.0, 1.0), "ffcad09d 3f9008af f828dd10 de644670 fba0ad02 53c8fd6f 5942b57d", "946f4c69"),
]  # fmt: skip


@pytest.mark.parametrize("name, dtype, args, values, state", RECORDED)
def test_fills_are_pytorchs_to_the_last_bit(name, dtype, args, values, state):
    for size, expected in zip(SIZES, values.split(), strict=True):
        gen = seeded(123)
        assert checksum(FILLS[name](gen, empty(size, dtype), *args)) == expected, size
    assert checksum(gen.state_bytes()) == state


def draws(function, *args, seed: int = 42, **kwargs):
    return function(seeded(seed), *args, **kwargs)


@pytest.mark.parametrize(
    "drawn, expected",
    [
        (lambda: draws(fill_normal, empty(5, "float64"), 0.3, 1.7),
         [0.87237360245256, 0.5189759887322025, 0.6985860177146039, 0.6915661474548402, -1.6088558404548894]),
        (lambda: draws(fill_normal, empty(17, "float64"), 0.3, 1.7)[-3:],
         [1.7707948900102424, 1.7538671345028878, 0.7240001954756801]),
        (lambda: draws(fill_exponential, empty(4, "float64"), 1.7),
         [0.03524353864164832, 0.038221252231403116, 0.07759810587299446, 0.031772324582761274]),
        (lambda: draws(fill_cauchy, empty(4, "float64"), 0.3, 1.7),
         [-8.901228404895432, -8.18929183609582, -3.8562863554361955, -9.897687006505649]),
        (lambda: draws(fill_log_normal, empty(3, "float64"), 0.3, 0.9),
         [1.8276323273105766, 1.5157774332818819, 1.6669842023438102]),
        (lambda: draws(standard_gamma, np.array([0.1, 0.5, 1, 2, 7.5, 0])),
         [0.6927260634293273, 0.3128827216734808, 0.26964452721822635, 2.456990745575733, 9.559054936254965,
          2.2250738585072014e-308]),
        (lambda: draws(dirichlet, np.array([[0.5, 1, 2], [3, 0.1, 1]])),
         [[0.628486891312169, 0.3393001765440858, 0.0322129321437453],
          [0.6358021220583894, 0.062012701089794627, 0.302185176851816]]),
        (lambda: draws(normal, np.array([1, 2, 3], np.float32), np.array([0.1, 0, 2], np.float32)),
         [1.0336689949035645, 2.0, 3.4689247608184814]),
    ],
)  # fmt: skip
def test_numbers_that_hang_on_the_c_library(drawn, expected):
    np.testing.assert_allclose(drawn(), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "drawn, expected",
    [
        (lambda: draws(poisson, np.array([0, 0.5, 3, 9.5, 12, 40, 1000, 2])), [0, 0, 1, 7, 11, 48, 1010, 3]),
        (lambda: draws(binomial, np.array([5, 10, 100, 100, 1000, 0, 7, 20], np.float32),
                       np.array([0.5, 0.2, 0.4, 0.9, 0.01, 0.5, 1, 0], np.float32)), [1, 1, 40, 95, 6, 0, 7, 0]),
        (lambda: draws(multinomial, np.array([[0.1, 0.2, 0.7], [3, 0, 1]]), 6, True),
         [[0, 0, 1, 0, 2, 2], [2, 2, 0, 0, 0, 0]]),
        (lambda: draws(multinomial, np.array([0.1, 0.2, 0.7, 0.5], np.float32), 3), [3, 2, 1]),
        (lambda: draws(multinomial, np.array([[0.1, 0.2, 0.7], [3, 0, 1]]), 1), [[2], [0]]),
        (lambda: draws(fill_bernoulli, empty((2, 3)), np.array([[0.2, 0.5, 0.9], [0.1, 0.5, 1]], np.float32)),
         [[0, 0, 1], [0, 1, 1]]),
        (lambda: draws(fill_bernoulli, empty(6), np.array([0.2, 0.5, 0.9, 0.1, 0.5, 1])), [1, 1, 1, 1, 0, 1]),
        (lambda: draws(fill_dropout, empty(8), 0.3), np.float32([1, 1, 1, 1, 1, 1, 0, 0]) / np.float32(0.7)),
        (lambda: draws(rrelu_noise, np.array([-1, 2, -3, 0], np.float32), 0.1, 0.3, seed=0),
         np.float32([0.29401060938835144, 1.0, 0.24156397581100464, 0.1918765902519226])),
    ],
)  # fmt: skip
def test_numbers_of_one_value_each(drawn, expected):
    np.testing.assert_array_equal(drawn(), expected)


def test_elements_are_filled_in_memory_order():
    transposed = fill_normal(seeded(), empty((4, 3)).T)
    expected = [0.33669036626815796, 0.23033303022384644, 2.2082014083862305, 0.2673508822917938]
    np.testing.assert_allclose(transposed[0], expected, rtol=1e-7)
    sparse = fill_uniform(seeded(), empty((2, 3, 4, 2))[..., 0].transpose(2, 0, 1))
    np.testing.assert_array_equal(sparse[:, 0, 0], fill_uniform(seeded(), empty(4)))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        fill_uniform(seeded(), np.lib.stride_tricks.as_strided(empty(1), (4,), (0,)))


def test_calls_mixed_on_one_generator():
    gen, real = seeded(), np.float32
    parts = [
        fill_normal(gen, empty(3)), fill_uniform(gen, empty(2)), fill_normal(gen, empty(20))[-2:],
        fill_normal(gen, empty(2)), randperm(gen, 3), standard_gamma(gen, np.ones(2, real)), fill_normal(gen, empty(2)),
        poisson(gen, np.full(2, 20, real)), fill_uniform(gen, empty(1)),
    ]  # fmt: skip
    expected = [
        0.33669036626815796, 0.12880940735340118, 0.23446236550807953, 0.9407714605331421, 0.13318592309951782,
        -1.2741512060165405, 2.1227850914001465, 0.23033303022384644, -0.09150922298431396, 0.0, 2.0, 1.0,
        0.8777168393135071, 1.1088902950286865, 0.6410111784934998, -0.008498823270201683, 16.0, 21.0,
        0.9811253547668457,
    ]  # fmt: skip
    np.testing.assert_allclose(np.concatenate(parts), expected, rtol=1e-6)


# ---- permutations


@pytest.mark.parametrize(
    "n, expected",
    [(1, "6522df69"), (2, "42d3dac4"), (10, "8aa93b12"), (1000, "60b6e6f8"), (5000, "5d2c7d38")],
)
def test_randperm(n, expected):
    assert checksum(randperm(seeded(7), n)) == expected
    assert np.array_equal(randperm(seeded(7), n, np.float64), randperm(seeded(7), n))


def swapped(target) -> list[int]:
    places = list(range(len(target)))
    for i, j in enumerate(target):
        places[i], places[j] = places[j], places[i]
    return places


@pytest.mark.parametrize("n", [1025, 3000])
def test_shuffle_resolves_all_steps_at_once(n):
    target = np.arange(n) + seeded().words(n) % (n - np.arange(n))
    assert shuffle(target).tolist() == swapped(target.tolist())


def test_large_permutations_go_inside_out(monkeypatch):
    monkeypatch.setattr("pullback.core.random_integers.LARGE_SHUFFLE", 50)
    at_or_before = seeded().words64(2000) % np.arange(1, 2001, dtype=np.uint64)
    assert randperm(seeded(), 2000).tolist() == swapped(at_or_before.tolist())


# ---- the generator


def test_state_has_pytorchs_layout():
    gen = seeded()
    assert gen.state_bytes()[:24].tolist() == [42, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, *[0] * 11]
    fill_normal(gen, empty(3))
    state = gen.state_bytes()
    assert state.shape == (5056,) and state.dtype == np.uint8
    assert state[:24].tolist() == [42, 0, 0, 0, 0, 0, 0, 0, 105, 2, 0, 0, 1, 0, 0, 0, 8, *[0] * 7]
    assert state[5016:5040].view(np.float64).tolist() == [0, pytest.approx(0.23033303, rel=1e-7), 0]
    assert state[5040:5044].view(np.int32) == 1


@given(st.integers(0, 2**64 - 1), st.integers(0, 1500), st.booleans())
@settings(max_examples=30, deadline=None)
def test_state_round_trip(seed, words, waiting):
    gen = seeded(seed)
    gen.words(words)
    if waiting:
        fill_normal(gen, empty(1))
    copies = [gen.clone_state(), pickle.loads(pickle.dumps(gen)), copy.deepcopy(gen), Generator()]
    copies[-1].set_state_bytes(gen.state_bytes())
    drawn = fill_normal(gen, empty(5)), gen.words(700), gen.state_bytes()
    for other in copies:
        assert other.initial_seed() == seed
        for ours, theirs in zip(
            drawn, (fill_normal(other, empty(5)), other.words(700), other.state_bytes()), strict=True
        ):
            assert np.array_equal(ours, theirs)


def test_seeds():
    gen = Generator()
    assert gen.initial_seed() == 67280421310721
    assert gen.manual_seed(-1).initial_seed() == 2**64 - 1
    assert gen.seed() == gen.initial_seed()
    assert np.array_equal(seeded(2**40 + 5).words(3), seeded(5).words(3))
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            gen.manual_seed(seed)
    with pytest.raises(RuntimeError, match="manual_seed expected a long, but got float"):
        gen.manual_seed(1.5)


def test_bad_states():
    gen = Generator()
    with pytest.raises(RuntimeError, match="size 5056 but found the input RNG state size to be 10"):
        gen.set_state_bytes(np.zeros(10, np.uint8))
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        gen.set_state_bytes(np.zeros(5056, np.uint8))
    with pytest.raises(TypeError, match="RNG state must be a torch.ByteTensor"):
        gen.set_state_bytes(np.zeros(5056))


def test_module_functions_work_on_the_default_generator():
    assert randoms.manual_seed("3") is randoms.default_generator
    assert randoms.initial_seed() == 3
    assert randoms.seed() == randoms.initial_seed()


def test_threads_share_a_generator_without_losing_numbers():
    gen, parts = seeded(), []
    threads = [threading.Thread(target=lambda: parts.extend(gen.words64(50) for _ in range(40))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(np.sort(np.concatenate(parts)), np.sort(seeded().words64(50 * 160)))


def test_rejection_gives_back_what_it_read_ahead():
    gen, other = seeded(), seeded()
    poisson(gen, np.zeros(3))
    assert np.array_equal(gen.state_bytes(), other.state_bytes())
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        poisson(gen, np.array([-1.0]))
    assert gen.lock.acquire(blocking=False)
    gen.lock.release()


# ---- what must hold for any input


@given(st.sampled_from((np.dtype("f4"), np.dtype("f8"))), st.integers(0, 40), st.floats(-1e3, 1e3), st.floats(0, 1e3))
@settings(max_examples=50, deadline=None)
def test_uniform_stays_inside(dtype, size, low, width):
    high = low + width
    values = fill_uniform(seeded(size), np.empty(size, dtype), low, high)
    assert ((values >= dtype.type(low)) & ((values < dtype.type(high)) | (values == dtype.type(low)))).all()


@given(st.integers(-(2**63), 2**63 - 2), st.integers(1, 2**64))
@settings(max_examples=50, deadline=None)
def test_integers_stay_inside(low, span):
    high = min(low + span, 2**63 - 1)
    values = fill_random_range(seeded(), empty(50, "int64"), low, high).tolist()
    assert all(low <= v < high for v in values)


@given(st.floats(1e-3, 50))
@settings(max_examples=20, deadline=None)
def test_positive_distributions(parameter):
    many = np.full(200, parameter)
    assert (standard_gamma(seeded(), many) > 0).all()
    counts = poisson(seeded(), many)
    assert (counts >= 0).all() and (counts == np.floor(counts)).all()
    assert np.allclose(dirichlet(seeded(), many.reshape(20, 10)).sum(-1), 1)
    tries = binomial(seeded(), np.full(200, 30.0), np.full(200, parameter / 51))
    assert ((tries >= 0) & (tries <= 30)).all()


@pytest.mark.parametrize(
    "sample, mean, variance",
    [
        (lambda gen, n: fill_normal(gen, empty(n), 1, 2), 1, 4),
        (lambda gen, n: fill_normal(gen, empty(n, "float64"), 1, 2), 1, 4),
        (lambda gen, n: fill_exponential(gen, empty(n), 2), 0.5, 0.25),
        (lambda gen, n: fill_geometric(gen, empty(n), 0.25), 4, 12),
        (lambda gen, n: fill_bernoulli(gen, empty(n), 0.3), 0.3, 0.21),
        (lambda gen, n: poisson(gen, np.full(n, 3.5)), 3.5, 3.5),
        (lambda gen, n: poisson(gen, np.full(n, 35.0)), 35, 35),
        (lambda gen, n: binomial(gen, np.full(n, 12.0), np.full(n, 0.7)), 8.4, 2.52),
        (lambda gen, n: binomial(gen, np.full(n, 200.0), np.full(n, 0.3)), 60, 42),
        (lambda gen, n: standard_gamma(gen, np.full(n, 0.6)), 0.6, 0.6),
    ],
)
def test_mean_and_variance(sample, mean, variance):
    values = np.asarray(sample(seeded(3), 20000), np.float64)
    assert abs(values.mean() - mean) < 5 * math.sqrt(variance / values.size)
    assert abs(values.var() / variance - 1) < 0.15


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_fused_rounds_once(a, b, c):
    exact = float(Fraction(a) * Fraction(b) + Fraction(c))
    assert fused(np.array([a]), b, c)[0] == pytest.approx(exact, rel=2**-53, abs=1e-300)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("exponent", range(-300, 0, 23))
def test_fused_sees_what_is_far_below_a_tie(exponent, sign):
    """1.5 (1 + ulp) lies halfway between two numbers: the sum decides, however small."""
    c = sign * 2.0**exponent
    exact = float(Fraction(1 + 2**-52) * Fraction(1.5) + Fraction(c))
    assert fused(np.array([1 + 2**-52]), 1.5, c)[0] == exact


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda g: fill_uniform(g, empty(3), 2, 1), RuntimeError, r"range, but found from=2 > to=1"),
        (lambda g: fill_uniform(g, empty(3), -3e38, 3e38), RuntimeError, r"to-from to exceed the limit"),
        (lambda g: fill_uniform(g, empty(3, "float16"), 0, 1e5), RuntimeError, "to is out of bounds for c10::Half"),
        (lambda g: fill_uniform(g, empty(3, "int32")), NotImplementedError, "\"check_uniform_bounds\" .* 'Int'"),
        (lambda g: fill_normal(g, empty(3), 0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
        (lambda g: fill_normal(g, empty(3, "int64")), NotImplementedError, "\"normal_kernel_cpu\" .* 'Long'"),
        (lambda g: fill_exponential(g, empty(3), 0), RuntimeError, "exponential_ expects lambda > 0.0"),
        (lambda g: fill_bernoulli(g, empty(3), 1.5), RuntimeError, r"p to be in \[0, 1\], but got p=1.5"),
        (lambda g: fill_bernoulli(g, empty(3), np.array([2.0])), RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
        (lambda g: fill_random_range(g, empty(3, "int64"), 5, 5), RuntimeError, "got from=5 >= to=5"),
        (lambda g: fill_random_range(g, empty(3, "uint8"), 0, 300), RuntimeError, "to - 1 is out .* unsigned char"),
        (lambda g: randperm(g, 300, np.uint8), RuntimeError, "type uint8_t without overflow"),
        (lambda g: randperm(g, 3000, np.float16), RuntimeError, "n cannot be greater than 2049 for Half type."),
        (lambda g: multinomial(g, np.ones(3), 4), RuntimeError, "cannot sample n_sample > prob_dist"),
        (lambda g: multinomial(g, np.array([0.1, -0.2]), 3, True), RuntimeError, "encountering probability entry < 0"),
        (lambda g: multinomial(g, np.zeros(3), 1), RuntimeError, "sum of probabilities <= 0"),
        (lambda g: binomial(g, np.ones(1, int), np.ones(1)), ValueError, "dtypes for count, got: Long"),
        (lambda g: Generator("cuda"), RuntimeError, "cuda"),
    ],
)
def test_errors_have_pytorchs_words(call, error, words):
    with pytest.raises(error, match=words):
        call(Generator())


@pytest.mark.parametrize("alpha", [0.05, 0.7, 3.0, 40.0, 1e4])
def test_gamma_gradient_against_the_quantile_function(alpha):
    from scipy.special import gammainc, gammaincinv

    x = gammaincinv(alpha, np.linspace(0.02, 0.98, 25))
    step = alpha * 1e-5
    slope = (gammaincinv(alpha + step, gammainc(alpha, x)) - gammaincinv(alpha - step, gammainc(alpha, x))) / (2 * step)
    np.testing.assert_allclose(standard_gamma_grad(np.full(25, alpha), x), slope, rtol=1e-5)


@pytest.mark.parametrize("alpha, beta", [(0.5, 2.0), (3.0, 3.0), (30.0, 1.0), (200.0, 300.0)])
def test_dirichlet_gradient_against_the_quantile_function(alpha, beta):
    from scipy.special import betainc, betaincinv

    x = betaincinv(alpha, beta, np.linspace(0.02, 0.98, 25))
    step = alpha * 1e-5
    p = betainc(alpha, beta, x)
    slope = (betaincinv(alpha + step, beta, p) - betaincinv(alpha - step, beta, p)) / (2 * step)
    many = np.full(25, alpha)
    np.testing.assert_allclose(dirichlet_grad(x, many, many + beta) * (1 - x), slope, rtol=1e-6)


@pytest.mark.parametrize("shape, count", [((50, 40), 4), ((7, 9), 9), ((30,), 5), ((5, 300), 64)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_categories_of_few_are_those_of_a_sort(shape, count, dtype, monkeypatch):
    weights = np.round(np.random.default_rng(0).random(shape), 1).astype(dtype) + dtype(0.01)
    first = draws(multinomial, weights, count)
    monkeypatch.setattr(random_integers.native, "topk", lambda *args: None)
    np.testing.assert_array_equal(first, draws(multinomial, weights, count))


def test_binomial_of_counts_that_are_not_finite():
    """No chance gives none, however many the tries; otherwise there is no answer."""
    counts = np.array([np.inf, np.nan, np.inf, np.nan, 4.0, -1.0])
    got = binomial(seeded(), counts, np.array([0.0, -1.0, 0.5, 1.0, np.nan, np.nan]))
    assert np.array_equal(got, [0, 0, np.nan, np.nan, np.nan, 0], equal_nan=True)
