"""From a prompt to token ids: what is too long is cut where it hurts least, and counted.

Inputs are cut in the context field that the prompt format names, targets in the explanation;
never in the question, the answer or the separator.

An encoder-decoder reads the input, with its end token, and writes the target. A decoder-only model goes
on where the input ends: there a plain prompt ends in a line break and a chat in the template's words that
call for an answer. Input and target are tokenized apart, so that training and generation see the same
boundary; the target begins as a text of its own begins, without the token that begins every text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from caref.errors import CarefError
from caref.tasks.example import Example
from caref.tasks.prompt import Prompt, PromptFormat

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True)
class EncodedQuestion:
    """What a model is asked.

    Attributes:
        id: Names it in the answers.
        input: The text.
        input_ids: Its tokens: for an encoder with the end token, for a decoder-only model up to the point
            at which the answer begins.
        candidates: The answers to choose from, as a target would write them; empty for free-form.
    """

    id: str
    input: str
    input_ids: list[int]
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EncodedExample:
    """A question with what should be answered.

    Attributes:
        question: What is asked.
        labels: The target's tokens, end token included.
        answer: The right answer as the target writes it.
        explanations: The references.
        input_cut: Whether the input's context was shortened.
        target_cut: Whether the target's explanation was shortened.
    """

    question: EncodedQuestion
    labels: list[int]
    answer: str
    explanations: tuple[str, ...]
    input_cut: bool
    target_cut: bool


class Encoder:
    """Renders examples in a prompt format and tokenizes them within two limits.

    Args:
        tokenizer: The model's.
        prompt_format: How an example is put into words.
        config: The model's: whether it is decoder-only, and from which token a decoder starts. A tokenizer
            that begins every text with that same token (BERT's) would make the target say it twice.
        max_input_tokens: Limit of the input, its end token or line break included.
        max_target_tokens: Limit of the target, end token included.
        answer_only: Targets are the answer alone, without separator and explanation.

    Raises:
        CarefError: If the prompt format is a chat and the tokenizer has no chat template.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        prompt_format: PromptFormat,
        config: PreTrainedConfig,
        *,
        max_input_tokens: int = 256,
        max_target_tokens: int = 64,
        answer_only: bool = False,
    ) -> None:
        if prompt_format.chat and tokenizer.chat_template is None:
            raise CarefError(
                f"the prompt {prompt_format.name!r} is a chat, and this model's tokenizer has no chat "
                "template; use --prompt instruction"
            )
        self.tokenizer = tokenizer
        self.prompt_format = prompt_format
        self.decoder_only = not config.is_encoder_decoder
        self.decoder_start_id = getattr(config, "decoder_start_token_id", None)
        self.max_input_tokens = max_input_tokens
        self.max_target_tokens = max_target_tokens
        self.answer_only = answer_only

    @property
    def separator(self) -> str:
        """What stands between answer and explanation."""
        return self.prompt_format.separator

    @property
    def end_id(self) -> int:
        """The token that ends every target."""
        return int(self.tokenizer.eos_token_id)

    def question(self, id: str, text: str, candidates: Sequence[str] = ()) -> EncodedQuestion:
        """Tokenize a text that is an input already.

        Raises:
            CarefError: If it is too long: nobody said which part of it may be cut.
        """
        system = self.prompt_format.system if self.prompt_format.chat else None
        ids = self._input_ids(text, system)
        if len(ids) > self.max_input_tokens:
            raise CarefError(
                f"the input {id!r} has {len(ids)} tokens, more than the {self.max_input_tokens} of this run"
            )
        return EncodedQuestion(id, text, ids, tuple(candidates))

    def ask(self, example: Example) -> tuple[EncodedQuestion, bool]:
        """Tokenize an example's input; the second value says whether its context was cut.

        Raises:
            CarefError: If it is too long even with nothing left to cut.
        """
        prompt, cut = self._fit(
            example.fields.get(self.prompt_format.context or "", ""),
            lambda words: self.prompt_format.render(example, context_words=words),
            lambda prompt: len(self._input_ids(prompt.input, prompt.system)),
            self.max_input_tokens,
            f"the input of example {example.id!r} has {{}} tokens and no context left to cut; "
            "raise --max-input-tokens or name a context field in the prompt",
        )
        return self.question(example.id, prompt.input, prompt.candidates), cut

    def encode(self, example: Example) -> EncodedExample:
        """Tokenize one example.

        Raises:
            CarefError: If it is too long even with nothing left to cut.
        """
        question, input_cut = self.ask(example)
        whole = self.prompt_format.render(example)
        target, target_cut = self._fit(
            "" if self.answer_only else whole.explanation,
            lambda words: self.prompt_format.render(example, explanation_words=words),
            lambda prompt: len(self._target_ids(prompt)),
            self.max_target_tokens,
            f"the target of example {example.id!r} has {{}} tokens without its explanation; "
            "raise --max-target-tokens",
        )
        return EncodedExample(
            question=question,
            labels=self._target_ids(target),
            answer=whole.answer,
            explanations=example.explanations,
            input_cut=input_cut,
            target_cut=target_cut,
        )

    def encode_all(self, examples: Sequence[Example]) -> list[EncodedExample]:
        """Tokenize several examples, in their order."""
        return [self.encode(example) for example in examples]

    def answer_ids(self, answer: str) -> list[int]:
        """The tokens by which an answer is scored, as labels.

        They end in the separator, so that no candidate is the beginning of another ("bank", "bank
        account"); where the explanation is not trained, the end token plays that part.
        """
        if self.answer_only:
            return self._label_ids(answer)
        return self._label_ids(f"{answer}{self.separator}".strip())[:-1]

    def separator_ids(self) -> list[int]:
        """The separator's tokens as they stand inside a target.

        Many tokenizers write a word that follows another differently from one that begins a text.
        """
        before = self._label_ids("a")[:-1]
        whole = self._label_ids(f"a{self.separator}".rstrip())[:-1]
        if whole[: len(before)] == before:
            return whole[len(before) :]
        return list(self.tokenizer(self.separator.strip(), add_special_tokens=False).input_ids)

    def round_trip(self, text: str) -> str:
        """What the tokenizer makes of a text: some put blanks around an apostrophe."""
        return self.text(self._label_ids(text))

    def text(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones left out."""
        return self.tokenizer.decode(ids, skip_special_tokens=True).strip()

    def _input_ids(self, text: str, system: str | None) -> list[int]:
        if self.prompt_format.chat:
            messages = [{"role": "user", "content": text}]
            if system is not None:
                messages.insert(0, {"role": "system", "content": system})
            return list(
                self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
            )
        if not self.decoder_only:
            return self._text_ids(text)
        ids = list(self.tokenizer(f"{text}\n").input_ids)
        return ids[:-1] if len(ids) > 1 and ids[-1] == self.end_id else ids

    def _target_ids(self, prompt: Prompt) -> list[int]:
        return self._label_ids(prompt.answer if self.answer_only else prompt.target)

    def _label_ids(self, text: str) -> list[int]:
        """The tokens of a text that is written, end token included."""
        if self.decoder_only:
            return [*self.tokenizer(text, add_special_tokens=False).input_ids, self.end_id]
        ids = self._text_ids(text)
        return ids[1:] if len(ids) > 1 and ids[0] == self.decoder_start_id else ids

    def _text_ids(self, text: str) -> list[int]:
        """The tokens of a text, end token included, as an encoder-decoder was pretrained."""
        ids = list(self.tokenizer(text).input_ids)
        return ids if ids and ids[-1] == self.end_id else [*ids, self.end_id]

    def _fit(
        self,
        text: str,
        render: Callable[[int | None], Prompt],
        length: Callable[[Prompt], int],
        limit: int,
        too_long: str,
    ) -> tuple[Prompt, bool]:
        """The rendering with the most words of `text` that stays within `limit` tokens."""
        whole = render(None)
        if length(whole) <= limit:
            return whole, False
        fits, too_many = 0, len(text.split())
        shortest = render(0) if too_many else whole
        if length(shortest) > limit:
            raise CarefError(too_long.format(length(shortest)))
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            if length(render(middle)) <= limit:
                fits = middle
            else:
                too_many = middle
        return render(fits), True
