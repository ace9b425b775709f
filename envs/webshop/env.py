"""The WebShop text environment: one shopper, one goal, the official pages.

Departures from the official environment (princeton-nlp/WebShop, text mode), all of them:

| where | official | here | made official by |
| --- | --- | --- | --- |
| search engine | Lucene through Java | the same order without Java | `search="lucene"` |
| title nouns | tagged by spaCy | spaCy, else stored ones, else title words | `nouns="spacy"` |
| step limit | none | `max_steps`, then `truncated`; never a success | a large `max_steps` |
| `search[<c> category]`, `search[<q> query]` | list a whole kind | the same | off: `prefix_queries=False` |
| Attributes page | off | off | on: `show_attributes=True` |
| prices, price caps | drawn from the unseeded global generator | private generator, seed 0 | no: tasks are fixed |
| after the purchase | accepts actions, pays again | the episode is over; `step` raises `RuntimeError` | no |
| reset | a random goal, or a goal number once per session name | any task by its id, at any time | no |
| `search[<r> ...]` | 50 random products | an ordinary keyword search | no: not repeatable |
| `search[<a> ...]`, `search[<c>]` | raise | an ordinary keyword search | no: a fault |
| more than 1,024 query terms | raises | searched like any other query | `search="lucene"`: `EnvError` |
| a failing action | may leave a page whose buttons raise | cannot happen | no: a fault |
| an asin with small letters | raises when clicked | opens the product | no: a fault |
| a data row that cannot be priced | raises somewhere | `DataError` when the data is read | no: a fault |

The reward is the official one; `reward="strict"` is a variant of ours (`reward.py`), and run records tell which.

Kept on purpose: `search[...]` works on every page, with or without a search bar; option clicks are invisible
in mode `text`; a value that two options share is chosen for the last of them only, since the official list of
clickables is keyed by text; `click[search]` is refused although it is listed; an action that is not
understood shows the same page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envs.base import AnyText, StepInfo, TextEnv
from envs.webshop.flow import State, advance, page_of
from envs.webshop.pages import ObservationMode, Page, clickables, render

if TYPE_CHECKING:
    from envs.webshop.world import WebShopWorld

MAX_STEPS = 15
MAX_OBSERVATION_CHARACTERS = 10_000_000
MAX_ACTION_CHARACTERS = 100_000
SEARCH_TEMPLATE = "search[<keywords>]"


class WebShopInfo(StepInfo):
    """Facts about the moment after `reset` or `step`."""

    page: Page
    """The structured form of exactly what the page shows."""
    has_search_bar: bool
    clickables: tuple[str, ...]
    """What `click[...]` accepts, in the official order; `search` is listed on the search page but refused."""


class WebShopEnv(TextEnv):
    """One shopper in a shared world; see the table above for how it differs from the official environment."""

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012 - gymnasium's own name and form

    def __init__(
        self,
        world: WebShopWorld,
        *,
        max_steps: int = MAX_STEPS,
        observation_mode: ObservationMode = "text",
        render_mode: str | None = None,
    ) -> None:
        if max_steps < 1:
            raise ValueError(f"max_steps is {max_steps}, expected at least 1")
        if observation_mode not in ("text", "text_rich"):
            raise ValueError(f"observation_mode is {observation_mode!r}, expected 'text' or 'text_rich'")
        self.world = world
        self.max_steps = max_steps
        self.observation_mode: ObservationMode = observation_mode
        self.render_mode = render_mode
        self.observation_space = AnyText(MAX_OBSERVATION_CHARACTERS)
        self.action_space = AnyText(MAX_ACTION_CHARACTERS)
        self._state: State | None = None
        self._steps = 0
        self._over = False

    def reset(  # type: ignore[override]  # to mypy a TypedDict is no dict[str, Any]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, WebShopInfo]:
        """Open a task by id, or one of the train split chosen by the seed.

        Raises `KeyError` for a task that this world does not have and `ValueError` for an unknown option.
        """
        super().reset(seed=seed)
        options = options or {}
        if unknown := options.keys() - {"task"}:
            raise ValueError(f"unknown reset options {sorted(unknown)}, expected 'task'")
        if "task" in options:
            goal = self.world.goal(options["task"])
        else:
            train = self.world.splits["train"]
            goal = self.world.goals[train[int(self.np_random.integers(len(train)))]]
        self._enter(State(goal))
        self._steps, self._over = 0, False
        return self._observation, self._info(valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, WebShopInfo]:  # type: ignore[override]
        """Carry out `search[...]` or `click[...]`; the reward is paid once, by the purchase.

        Raises `RuntimeError` before `reset` and after the end, `TypeError` for an action that is no string.
        """
        if self._state is None or self._over:
            raise RuntimeError("the episode is over; call reset" if self._over else "call reset before step")
        if not isinstance(action, str):
            raise TypeError(f"action is {action!r}, expected a string such as 'click[buy now]'")
        after = advance(self.world.shop, self._state, self._page, action)
        if after is not None:
            self._enter(after)
        self._steps += 1
        bought = self._state.kind == "done"
        truncated = not bought and self._steps >= self.max_steps
        self._over = bought or truncated
        reward = self._state.score if bought and self._state.score is not None else 0.0
        return self._observation, reward, bought, truncated, self._info(valid=after is not None)

    def render(self) -> str:
        """The page as text with buttons marked."""
        if self._state is None:
            raise RuntimeError("call reset before render")
        return render(self._page, "text_rich")

    def _enter(self, state: State) -> None:
        self._state = state
        self._page = page_of(self.world.shop, state)
        self._observation = render(self._page, self.observation_mode)
        self._clickables = clickables(self._page)
        admissible = tuple([f"click[{name}]" for name in self._clickables if name != "search"])
        self._admissible = (SEARCH_TEMPLATE, *admissible) if self._page.has_search_bar else admissible

    def _info(self, *, valid: bool) -> WebShopInfo:
        assert self._state is not None
        score = self._state.score or 0.0
        return WebShopInfo(
            task_id=self._state.goal.task_id,
            task_type=self._state.goal.product.category,
            success=self._state.kind == "done" and score == 1.0,
            score=score,
            admissible=self._admissible,
            action_valid=valid,
            page=self._page,
            has_search_bar=self._page.has_search_bar,
            clickables=self._clickables,
            reward_parts=self._state.parts,
        )
