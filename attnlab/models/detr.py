"""DETR (Carion et al. 2020): convolutions, an encoder, and a decoder that predicts a box for each query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.mechanisms import Mechanism
from attnlab.models.checks import check_no_embeddings, check_sizes
from attnlab.models.config import StackConfig, layers_of_period
from attnlab.models.encoder import Encoder
from attnlab.models.shapes import DetectionShape, Shape, check_shape
from attnlab.models.vit import add_position, patch_grid
from attnlab.modules.conv import Conv, GroupNorm
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.latent import Latent
from attnlab.modules.layer_config import LayerConfig
from attnlab.modules.position import Position, Sinusoidal2D
from attnlab.modules.query import AnchoredQueries, LearnedQueries, QueryLayer
from attnlab.modules.stack import scan_layers, stack_layers
from attnlab.ops.layer import split_keys
from attnlab.ops.precision import accumulation_dtype
from attnlab.pattern import Pattern, period


@dataclass(frozen=True)
class Detr(StackConfig):
    """Configuration of an object detector: `layers` encoder and `layers` decoder layers over image features.

    The other fields are those of `StackConfig`. `mechanism` serves every attention that has no mechanism of its own.

    Differences from the paper: layers are pre-norm by default. Positions are added once before the encoder, and not to
    the queries and keys of each of its layers. Convolutions are few and have group norms, where the paper has a ResNet
    with fixed batch norms. Queries are anchored (`anchored`).

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    position: Position | Pattern = Sinusoidal2D()
    """The position encoding. Its `rows` and `columns`, if any, are replaced by those of the features.

    What it adds is added before the encoder, and again to the keys of the cross-attention. Rotations and biases apply
    only in the encoder.
    """
    norm_eps: float = 1e-5
    """The ε that the norms add to the variance, at least 1e-37 and below 1."""
    encoder: Mechanism | Pattern | None = None
    """Mechanism of the self-attention of the features. None: `mechanism`."""
    query_attention: Mechanism | Pattern | None = None
    """Mechanism of the self-attention of the queries. None: `mechanism`."""
    cross: Mechanism | Pattern | None = None
    """Mechanism of the attention from queries to features. None: `mechanism`."""
    queries: int = 40
    """Number of queries, which is the maximum number of boxes."""
    channels: int = 16
    """Number of channels of the first convolution stage. Each further stage has twice as many."""
    stages: int = 3
    """Number of convolution stages, 1 to 6. Each halves the sides of the image."""
    anchored: bool = True
    """True: each query has a learned point, relative to which its box is predicted (`AnchoredQueries`).

    This speeds up learning and is later than the paper. False: queries are learned vectors, as in the paper.
    """
    mechanism_fields: ClassVar[tuple[str, ...]] = ("encoder", "query_attention", "cross")
    """The roles whose mechanism is set by a field of that name. If it is None, by `mechanism`."""

    def __post_init__(self):
        super().__post_init__()
        check_sizes(queries=self.queries, channels=self.channels)
        if self.anchored and self.width % 4:
            raise ValueError(f"model.width={self.width} must be divisible by 4 for model.anchored=True")
        check_no_embeddings(self.scale_embeddings)
        for layer in period(self.attention):
            if layer.for_context != layer or isinstance(layer, Latent):
                raise ValueError(
                    f"model.attention={layer} is not supported by Detr: its keys and values have separate inputs"
                )
        if self.tied:
            raise ValueError("model.tied=True is not supported by Detr: images and classes have no embedding")
        if not 1 <= self.stages <= 6:
            raise ValueError(f"model.stages={self.stages} must be in 1 … 6")

    @property
    def attentions(self) -> dict[str, Mechanism | Pattern]:
        """The mechanism of each of the three attentions."""
        return {name: getattr(self, name) or self.mechanism for name in self.mechanism_fields}

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return the rows and columns of the features of an image. Each convolution stage halves them, rounding up."""
        return -(-height // 2**self.stages), -(-width // 2**self.stages)

    def create(self, key: PRNGKeyArray, shape: Shape) -> DetrNetwork:
        """Create a network for images of `shape` (`attnlab.tasks.vision.objects.Detections`).

        Raises:
            ValueError: The images may have more boxes than the model has queries.
        """
        shape = check_shape(self, shape, DetectionShape)
        if self.queries < shape.most:
            raise ValueError(
                f"model.queries={self.queries} must be at least {shape.most}, the maximum number of boxes in an image"
            )
        grid = self.grid(shape.image.height, shape.image.width)
        config = replace(self, position=patch_grid(self.position, *grid))
        return DetrNetwork(key, config, shape.image.channels, shape.classes, grid)


class Features(nnx.Module):
    """Stages of convolution, group norm and ReLU that map an image [H W C] to [h w D], each halving the sides.

    From the second stage on, a second convolution is added as a residual (He et al. 2016). The norm of a stage has the
    largest number of groups up to eight that divides its width.
    """

    def __init__(self, key: PRNGKeyArray, inputs: int, channels: int, stages: int, norm_eps: float):
        widths = [inputs, *(channels * 2**n for n in range(stages))]
        name = lambda n, what: fold_key(key, f"{n} {what}")
        self.half = nnx.List(Conv(name(n, "half"), *widths[n : n + 2], stride=2) for n in range(stages))
        self.more = nnx.List(Conv(name(n, "more"), widths[n + 1], widths[n + 1]) for n in range(1, stages))
        groups = lambda width: max(count for count in range(1, 9) if width % count == 0)
        norm = lambda width: GroupNorm(width, groups(width), norm_eps)
        self.norms = nnx.List(norm(width) for width in widths[1:])
        self.others = nnx.List(norm(width) for width in widths[2:])

    def __call__(self, x: Float[Array, "H W C"]) -> Float[Array, "h w D"]:
        """Map one image to its features."""
        for n, (conv, norm) in enumerate(zip(self.half, self.norms, strict=True)):
            x = jax.nn.relu(norm(conv(x)))
            if n:
                x = x + jax.nn.relu(self.others[n - 1](self.more[n - 1](x)))
        return x


def _layer(sizes: LayerConfig, mechanisms: tuple[Mechanism, ...], key: PRNGKeyArray) -> QueryLayer:
    return QueryLayer(key, sizes, *mechanisms)


class DetrNetwork(nnx.Module):
    """The network of a `Detr`, for one example."""

    def __init__(self, key: PRNGKeyArray, config: Detr, channels: int, classes: int, grid: tuple[int, int]):
        sizes, width = config.sizes, config.width
        roles = config.attentions["query_attention"], config.attentions["cross"]
        self.config = config
        self.features = Features(fold_key(key, "features"), channels, config.channels, config.stages, config.norm_eps)
        self.input_layer = sizes.dense(fold_key(key, "front"), config.channels * 2 ** (config.stages - 1), width)
        self.encoder = Encoder(fold_key(key, "encoder"), config, grid[0] * grid[1])
        # Each strided 3 × 3 convolution is centred on the first pixel of its output position.
        normalised = isinstance(config.position, Sinusoidal2D) and config.position.normalised
        anchors = partial(AnchoredQueries, middle=0.5 / 2**config.stages, normalised=normalised)
        queries = anchors if config.anchored else LearnedQueries
        self.queries = queries(fold_key(key, "queries"), config.queries, width)
        self.decoder = stack_layers(
            [partial(_layer, *each) for each in layers_of_period(config, *roles)],
            fold_key(key, "decoder"),
            config.layers,
        )
        self.decoded = sizes.final_norm()
        self.classes = Dense(fold_key(key, "classes"), width, classes + 1)
        self.hidden = nnx.List(Dense(fold_key(key, f"hidden {n}"), width, width) for n in range(2))
        # Small initial weights, so that boxes start at the points of their queries.
        self.boxes = Dense(fold_key(key, "boxes"), width, 4, initialiser="gaussian")

    def __call__(
        self, image: Float[Array, "H W C"], key: PRNGKeyArray | None = None
    ) -> tuple[Float[Array, "L Q classes"], Float[Array, "L Q 4"]]:
        """Return the class logits and the box of each query after every decoder layer, at least float32.

        The last class means "no object". Boxes are (centre x, centre y, width, height), as fractions of the image.
        """
        return self.outputs_and_maps(image, key)[0]

    def outputs_and_maps(self, image, key=None) -> tuple[tuple[Array, Array], dict]:
        """Return the result of a call, and the attention maps.

        The maps are {"encoder": [L H T T], "query_attention": [L H Q Q], "cross": [L H Q T]}, each None without an
        observer.
        """
        keys = split_keys(key, 2)
        context, where, maps = self.read(image, keys[0])
        sides = (side / 2**self.config.stages for side in image.shape[:2])
        place, points = (each.astype(context.dtype) for each in self.queries(*sides))
        arguments, remat = (place, context, where), self.config.remat
        _, (x, looks) = scan_layers(
            self.decoder, jnp.zeros_like(place), *arguments, key=keys[1], remat=remat, every=True
        )
        L, Q, D = x.shape
        x = x.reshape(L * Q, D)
        x = x if self.decoded is None else self.decoded(x)
        scores, boxes = self.classes(x).reshape(L, Q, -1), self._boxes(x, points).reshape(L, Q, 4)
        return (
            scores.astype(accumulation_dtype(scores.dtype)),
            boxes.astype(accumulation_dtype(boxes.dtype)),
        ), maps | looks

    def read(self, image: Float[Array, "H W C"], key=None) -> tuple[Float[Array, "T D"], Float[Array, "T D"], dict]:
        """Encode an image.

        Returns:
            The features row by row, the same with positions added, and the encoder's attention maps. The decoder takes
            its values from the first and its keys from the second.
        """
        x = self.features(image.astype(jnp.dtype(self.config.dtype)))
        x, maps = self.encoder(self.input_layer(x.reshape(-1, x.shape[-1])), None, key)
        i = np.arange(x.shape[0], dtype=np.int32)
        position = self.encoder.position
        return x, add_position(position, x, i, position.table(x.shape[0], x.dtype)), maps

    def _boxes(self, x: Float[Array, "T D"], points: Float[Array, "Q 2"]) -> Float[Array, "T 4"]:
        """Return boxes whose centres are predicted relative to the queries' points.

        The rows of x are layer by layer, and query by query within a layer.
        """
        for dense in self.hidden:
            x = jax.nn.relu(dense(x))
        start = jnp.pad(points, ((0, 0), (0, 2)))
        return jax.nn.sigmoid(self.boxes(x) + jnp.tile(start, (x.shape[0] // points.shape[0], 1)))
