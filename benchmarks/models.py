"""The workloads of `train.py`: each function takes a library (ours, or PyTorch) and gives (model, loss).

`loss()` computes the loss of one batch; what it reads was made once. The same text runs in both libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

Workload = Callable[[ModuleType], tuple[Any, Callable]]


def _classified(lib: ModuleType, model: Any, x: Any, classes: int) -> tuple[Any, Callable]:
    y = lib.randint(0, classes, (x.shape[0],))
    return model, lambda: lib.nn.functional.cross_entropy(model(x), y)


def scalar_chain(lib: ModuleType) -> tuple[Any, Callable]:
    class Chain(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = lib.nn.Parameter(lib.tensor(0.3))

        def forward(self):
            x = self.w
            for _ in range(50):
                x = (x * 1.01 + 0.1).sin()
            return x

    model = Chain()
    return model, model


def pointwise(lib: ModuleType) -> tuple[Any, Callable]:
    class Model(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = lib.nn.Parameter(lib.randn(1 << 22))

        def forward(self, x):
            return (lib.tanh(self.w * x) * lib.sigmoid(x) + self.w).mean()

    model, x = Model(), lib.randn(1 << 22)
    return model, lambda: model(x)


def norm_softmax(lib: ModuleType) -> tuple[Any, Callable]:
    norm, x = lib.nn.LayerNorm(512), lib.randn(1024, 512)
    return norm, lambda: (lib.softmax(norm(x), -1) * x).sum()


def mlp(width: int, batch: int, classes: int) -> Workload:
    def workload(lib: ModuleType) -> tuple[Any, Callable]:
        nn = lib.nn
        model = nn.Sequential(
            nn.Linear(width // 2, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes)
        )  # fmt: skip
        return _classified(lib, model, lib.randn(batch, width // 2), classes)

    return workload


def language_model(
    lib: ModuleType, layers: int, width: int, length: int, causal: bool = True, words: int = 512, heads: int = 4
) -> Any:
    """A GPT where `causal`, a BERT where not, with its loss: `model(tokens, targets)`."""
    nn, f = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(width, dim=-1)
            q, k, v = (a.view(b, t, heads, width // heads).transpose(1, 2) for a in (q, k, v))
            a = f.scaled_dot_product_attention(q, k, v, is_causal=causal)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, width))
            return x + self.down(f.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, x, y):
            h = self.tokens(x) + self.places(lib.arange(x.shape[1]))
            return f.cross_entropy(self.head(self.norm(self.blocks(h))).view(-1, words), y.view(-1))

    return Model()


def transformer(
    layers: int, width: int, length: int, batch: int, causal: bool, words: int = 512, heads: int = 4
) -> Workload:
    """A GPT where `causal`, a BERT where not."""

    def workload(lib: ModuleType) -> tuple[Any, Callable]:
        model = language_model(lib, layers, width, length, causal, words, heads)
        x, y = (lib.randint(0, words, (batch, length)) for _ in range(2))
        return model, lambda: model(x, y)

    return workload


def recurrent(kind: str, inner: int, layers: int, batch: int, time: int) -> Workload:
    def workload(lib: ModuleType) -> tuple[Any, Callable]:
        class Model(lib.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = getattr(lib.nn, kind)(64, inner, num_layers=layers, batch_first=True)
                self.out = lib.nn.Linear(inner, 10)

            def forward(self, x):
                return self.out(self.layer(x)[0][:, -1])

        return _classified(lib, Model(), lib.randn(batch, time, 64), 10)

    return workload


def convnet(lib: ModuleType) -> tuple[Any, Callable]:
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 64, 10),
    )  # fmt: skip
    return _classified(lib, model, lib.randn(32, 3, 32, 32), 10)


def residual_network(lib: ModuleType) -> Any:
    """ResNet-18, for ten classes."""
    nn = lib.nn

    def conv(inner: int, outer: int, size: int, stride: int) -> Any:
        return nn.Sequential(nn.Conv2d(inner, outer, size, stride, size // 2, bias=False), nn.BatchNorm2d(outer))

    class Block(nn.Module):
        def __init__(self, inner: int, outer: int, stride: int) -> None:
            super().__init__()
            self.first, self.second = conv(inner, outer, 3, stride), conv(outer, outer, 3, 1)
            self.side = conv(inner, outer, 1, stride) if stride > 1 or inner != outer else nn.Identity()

        def forward(self, x):
            return (self.second(self.first(x).relu()) + self.side(x)).relu()

    stages = [
        (64, 64, 1),
        (64, 64, 1),
        (64, 128, 2),
        (128, 128, 1),
        (128, 256, 2),
        (256, 256, 1),
        (256, 512, 2),
        (512, 512, 1),
    ]
    return nn.Sequential(
        conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *[Block(*s) for s in stages], nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(512, 10),
    )  # fmt: skip


def resnet18(lib: ModuleType) -> tuple[Any, Callable]:
    return _classified(lib, residual_network(lib), lib.randn(8, 3, 64, 64), 10)


def vit_tiny(lib: ModuleType) -> tuple[Any, Callable]:
    nn = lib.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 192, 8, 8)
            self.places = nn.Parameter(lib.randn(1, 64, 192) * 0.02)
            layer = lambda: nn.TransformerEncoderLayer(192, 3, 768, 0.0, "gelu", batch_first=True, norm_first=True)
            self.blocks = nn.Sequential(*[layer() for _ in range(4)])
            self.head = nn.Linear(192, 10)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2) + self.places
            return self.head(self.blocks(x).mean(1))

    return _classified(lib, Model(), lib.randn(8, 3, 64, 64), 10)


def vae(lib: ModuleType) -> tuple[Any, Callable]:
    nn, f = lib.nn, lib.nn.functional

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.both = nn.Linear(784, 400), nn.Linear(400, 40)
            self.outer, self.last = nn.Linear(20, 400), nn.Linear(400, 784)

        def forward(self, x, noise):
            mean, spread = self.both(self.inner(x).relu()).chunk(2, -1)
            seen = self.last(self.outer(mean + noise * (spread * 0.5).exp()).relu())
            apart = -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum()
            return f.binary_cross_entropy_with_logits(seen, x, reduction="sum") + apart

    model, x, noise = Model(), lib.rand(128, 784), lib.randn(128, 20)
    return model, lambda: model(x, noise)


def dcgan(lib: ModuleType) -> tuple[Any, Callable]:
    """Generator and discriminator, one loss through both."""
    nn, f = lib.nn, lib.nn.functional
    make = nn.Sequential(
        nn.ConvTranspose2d(64, 128, 4, 1, 0), nn.BatchNorm2d(128), nn.ReLU(), nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.BatchNorm2d(64),
        nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip
    judge = nn.Sequential(
        nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.LeakyReLU(0.2),
        nn.Conv2d(64, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.LeakyReLU(0.2), nn.Conv2d(128, 1, 4, 1, 0), nn.Flatten(),
    )  # fmt: skip
    noise, ones = lib.randn(16, 64, 1, 1), lib.ones(16, 1)
    return nn.Sequential(make, judge), lambda: f.binary_cross_entropy_with_logits(judge(make(noise)), ones)


WORKLOADS: dict[str, Workload] = {
    "scalar chain": scalar_chain,
    "pointwise 4M": pointwise,
    "norm, softmax": norm_softmax,
    "small MLP": mlp(128, 32, 10),
    "large MLP": mlp(2048, 128, 1000),
    "GPT 4x128": transformer(4, 128, 64, 8, True),
    "LSTM": recurrent("LSTM", 64, 1, 32, 32),
    "convnet": convnet,
    "ResNet-18": resnet18,
    "ViT-tiny": vit_tiny,
    "BERT-small": transformer(4, 256, 64, 8, False),
    "VAE": vae,
    "GRU of 2 layers": recurrent("GRU", 128, 2, 16, 32),
    "DCGAN": dcgan,
}
