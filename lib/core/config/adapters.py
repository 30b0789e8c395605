"""The shelf of adapters, each a section; what is trained is the sum of those that are there."""

from typing import Literal

from lib.core.config.section import Conflicts, Count, CountOrZero, Name, Positive, Section

Role = Literal["q", "k", "v", "o", "gate", "up", "down"]
Bounds = tuple[Positive, Positive]


class Tuner(Section):
    """An adapter of PEFT, around all linear layers but the output's unless it names its own; a model has one kind."""

    @property
    def layers(self) -> list[str] | str:
        """Returns the names of the layers that get it, or `all-linear`."""
        return getattr(self, "targets", "all-linear")

    @property
    def key(self) -> str:
        """Returns its key in `model.adapters`."""
        return type(self).__name__.lower()

    @property
    def family(self) -> str:
        """Returns its name in the table of combinations."""
        return getattr(self, "kind", self.key)


class Lora(Tuner):
    """Low-rank updates of linear layers. Dropout is absent on purpose: it would give the KL a noise floor."""

    kind: Literal["lora", "dora", "rslora"] = "lora"
    # dora: with a trained length of each row of the weight (Liu et al. 2024), whose norm is a constant in the backward
    # pass; rslora: the update is scaled by alpha / sqrt(r) (Kalajdzievski 2023)
    r: Count = 16  # rank
    alpha: Positive = 16  # the update is scaled by alpha / r
    targets: list[Name] | Literal["all-linear"] = [
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    ]  # fmt: skip
    # names of the linear layers that get an adapter


class Vera(Tuner):
    """Trained scales of random projections that all layers share (Kopiczko et al. 2024)."""

    r: Count = 256  # rank of the projections


class Oft(Tuner):
    """Trained rotations of blocks of a layer's inputs (Qiu et al. 2023)."""

    block_size: Count = 32  # inputs; it divides the width


class TinyLora(Tuner):
    """A few numbers for each layer, through fixed random maps of its singular vectors (arXiv 2602.04118)."""

    u: Count = 64  # numbers of a vector, of which each layer has one, along its two largest singular directions


class Bounded(Section):
    """A factor within bounds, which it approaches smoothly, so that its gradient vanishes nowhere."""

    bounds: Bounds = (0.9, 1.1)  # the least and the largest factor; 1 lies between them

    def _conflicts(self) -> Conflicts:
        if not self.bounds[0] < 1 < self.bounds[1]:
            yield ("bounds",), f"1, where it begins, is not between {self.bounds[0]:g} and {self.bounds[1]:g}"


class Ia3(Bounded):
    """IA3 (Liu et al. 2022): a factor for each output of a layer. PEFT's own cannot be combined with LoRA."""

    targets: list[Role] = ["down"]  # what the layers do; a fused layer counts by its parts


class HeadGates(Bounded):
    """A factor for each head: of queries and keys as attention gets them, of values, and of groups of o's outputs."""

    targets: list[Literal["q", "k", "v", "o"]] = ["v"]  # whose heads


class ChannelGates(Section):
    """A factor for each group of channels of the MLP, before its activation."""

    group_size: Count = 8  # channels; the MLP's width is a multiple of it


class ResidualGates(Section):
    """A factor for each number that attention adds to the residual stream, and with `post_ffn` the MLP too."""

    post_ffn: bool = False  # true: also of what the MLP adds


class ProjectionGates(Section):
    """A factor for each output of the attention's projections."""


class InputGates(Section):
    """A factor for each input of the attention's projections; one for all that a fused layer holds."""


class AttentionTemperature(Section):
    """A factor of attention's logits: between 0.5 and 2, 1 at first, higher for sharper attention."""

    per: Literal["model", "layer", "head"] = "layer"  # what has a factor of its own
    target: Literal["query", "logits"] = "query"
    # query: the factor multiplies queries; logits: its root multiplies queries and keys, for a group of heads that
    # share their keys the mean of their roots


class RopeFrequencySettings(Section):
    """A factor of all rotary frequencies, between 0.5 and 2: below 1 positions move closer together, above it apart."""


class BottleneckSettings(Section):
    """A small MLP added to what the model's MLPs write: y + s W2 GELU(W1 y) (Houlsby et al. 2019)."""

    width: Count = 4  # of its hidden layer


class SoftPromptSettings(Section):
    """Trained vectors before each prompt (Lester et al. 2021). The reference reads the prompt without them."""

    tokens: Count = 12  # vectors
    freeze_steps: CountOrZero = 0  # training steps before it begins to learn


class BitFit(Section):
    """A change of each bias that the linear layers have (Ben Zaken et al. 2021)."""

    lm_head: bool = False  # true: of the output layer's bias too


class NormGains(Section):
    """A change of each norm's gain."""


class Adapters(Section):
    """The adapters to train on a frozen base: those that are not null, in any combination."""

    lora: Lora | None = Lora()  # low-rank updates of linear layers
    vera: Vera | None = None  # scales of shared random projections, in the place of lora
    oft: Oft | None = None  # rotations of inputs, in the place of lora
    tinylora: TinyLora | None = None  # a few numbers per layer, in the place of lora
    ia3: Ia3 | None = None  # factors of a layer's outputs; {} for the defaults, here and below
    head_gates: HeadGates | None = None  # factors of heads
    channel_gates: ChannelGates | None = None  # factors of groups of the MLP's channels
    residual_gates: ResidualGates | None = None  # factors of what blocks add to the residual stream
    projection_gates: ProjectionGates | None = None  # factors of what attention's projections write
    input_gates: InputGates | None = None  # factors of what they read
    attention_temperature: AttentionTemperature | None = None  # a factor of attention's logits
    rope_frequency: RopeFrequencySettings | None = None  # a factor of rotary frequencies
    bottleneck: BottleneckSettings | None = None  # a small MLP next to the model's
    soft_prompt: SoftPromptSettings | None = None  # trained vectors before each prompt
    bitfit: BitFit | None = None  # changes of biases
    norm_gains: NormGains | None = None  # changes of norms' gains
    warmup_steps: CountOrZero = 0
    # training steps over which all of these, LoRA excepted, are blended in from doing nothing

    @property
    def families(self) -> dict[str, Section]:
        """Returns the settings of those of our own that are set, by family: all but PEFT's."""
        return {name: settings for name, settings in self._all.items() if not isinstance(settings, Tuner)}

    @property
    def tuner(self) -> Tuner | None:
        """Returns the settings of the adapter that PEFT adds to the model, if any."""
        return next((settings for settings in self._all.values() if isinstance(settings, Tuner)), None)

    @property
    def names(self) -> list[str]:
        """Returns all that are set, by their names in the table of combinations."""
        return [getattr(settings, "family", name) for name, settings in self._all.items()]

    @property
    def _all(self) -> dict[str, Section]:
        return {name: settings for name, settings in self if isinstance(settings, Section)}

    def _conflicts(self) -> Conflicts:
        tuners = [name for name, settings in self._all.items() if isinstance(settings, Tuner)]
        if len(tuners) > 1:
            yield tuple(tuners), f"PEFT puts one of {', '.join(tuners)} on a layer: set the others to null"
