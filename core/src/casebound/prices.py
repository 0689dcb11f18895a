"""What tokens cost: the operator's own figures, money per million tokens. Money is a decimal, and never guessed."""

from __future__ import annotations

from decimal import Decimal

from casebound.binding import AnswererModel, Bound
from casebound.contracts.model_call import ModelRequest, Usage
from casebound.errors import SettingsError
from casebound.settings_model import Llm, LlmProfile, Price

FREE = Price(input=Decimal(0), output=Decimal(0))
_MILLION = Decimal(10**6)


class Prices:
    """The prices that the settings give, by whoever is asked; one that answers by rules costs nothing.

    A case may have been answered by somebody who is not asked any more: any `[llm]` table that names provider and model
    with a price, of a stage or a profile, says what that cost. Where several do, the dearest counts.
    """

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._known = _known_prices(bound)

    @property
    def given(self) -> bool:
        """Whether there is any."""
        return bool(self._known)

    def price(self, request: ModelRequest) -> Price | None:
        """Return the price of whoever is asked by `request`, None where nobody gave one."""
        return self.price_of(request.stage, request.provider, request.model)

    def price_of(self, stage: str, provider: str, model: str | None) -> Price | None:
        """Return the price of somebody who answers `stage`, None where nobody gave one."""
        bound = self._bound.stages.get(stage)
        for one in bound.answerers if bound else ():
            if (one.provider, one.model) == (provider, model) and (own := _own_price(one)):
                return own
        spec = self._bound.host.providers.get(provider)
        rules = spec is not None and spec.resolver == "rules"
        return self._known.get((provider, model), FREE if rules else None)

    def cost(self, request: ModelRequest, input_tokens: int, output_tokens: int) -> Decimal:
        """Return what so many tokens of whoever is asked by `request` cost. Raises `SETTINGS_PRICE`."""
        price = self.price(request)
        if price is None:
            name = f"{request.provider} {request.model}" if request.model else request.provider
            raise self._unknown(f"{name}, which answered stage {request.stage}")
        return cost_of(price, input_tokens, output_tokens)

    def require(self) -> None:
        """Refuse settings that cap money and do not say what somebody costs who may be asked.

        Raises:
            SettingsError: `SETTINGS_PRICE`.
        """
        for stage, model in self._bound.stages.items():
            for one in model.answerers:
                if _own_price(one) is None:
                    raise self._unknown(f"{one.name}, who may answer stage {stage}")

    def _unknown(self, whom: str) -> SettingsError:
        settings = self._bound.settings
        cap = "run_money" if settings.budget.run_money else "case_money"
        return SettingsError(
            "SETTINGS_PRICE",
            path=str(settings.llm_path),
            pointer="llm.price",
            found=f"no price of {whom}, and a cap in [budget] {cap}",
            expected="input and output, money per million tokens, in the [llm] table that names it; 0 where it is free",
        )


def cost_of(price: Price, input_tokens: int, output_tokens: int) -> Decimal:
    """Return what so many tokens cost."""
    return (price.input * input_tokens + price.output * output_tokens) / _MILLION


def money_of(usage: Usage, price: Price | None) -> Decimal | None:
    """Return what a call has cost, None where its provider did not report all, or nobody gave a price."""
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    if usage.input_tokens < 0 or usage.output_tokens < 0:
        return None
    return cost_of(price, usage.input_tokens, usage.output_tokens)


def money_text(money: Decimal) -> str:
    """Return money as programs read it: a decimal, without an exponent and without zeros that say nothing."""
    return f"{money.normalize():f}"


def _own_price(model: AnswererModel) -> Price | None:
    return FREE if model.price is None and model.spec.resolver == "rules" else model.price


def _known_prices(bound: Bound) -> dict[tuple[str, str | None], Price]:
    llm = bound.settings.llm
    known: dict[tuple[str, str | None], Price] = {}
    choices: list[Llm | LlmProfile] = [llm, *llm.stage.values(), *llm.profile.values()]
    for choice in choices:
        provider = choice.provider or llm.provider
        # As in binding: model and price of [llm] belong to its provider.
        same = provider == llm.provider
        model = choice.model or (llm.model if same else None)
        price = choice.price or (llm.price if same else None)
        if price is not None:
            other = known.get((provider, model), FREE)
            known[provider, model] = Price(input=max(price.input, other.input), output=max(price.output, other.output))
    return known
