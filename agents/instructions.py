"""What a language model is told about a benchmark: task, actions, what ends an episode, the form of an answer."""

from __future__ import annotations

from agents.responses import Form

BRIEF: dict[str, str] = {
    # Short on purpose: a small policy on a CPU pays for every token of it in every episode.
    "webshop": (
        "Buy the product that the instruction asks for.\n"
        "Answer with:\n"
        "Thought: why\n"
        "Action: search[words] or click[button]"
    ),
    "alfworld": (
        "Do the task in this room.\n"
        "Answer with:\n"
        "Thought: why\n"
        "Action: go to, open, close, take, move, clean, heat, cool, use, examine, look or inventory"
    ),
    "deepsearch": (
        "Find the answer to the question.\n"
        "Answer with:\n"
        "Thought: why\n"
        "Action: search[query], open[title], next or answer[text]"
    ),
}
"""System messages of the brief style."""

_TASK: dict[str, str] = {
    "webshop": (
        "You shop in an online store. The instruction, which every page repeats, describes the product to buy: what "
        "it is, which properties and options it must have and often what it may cost at most. Find the product that "
        "fits best, choose its options and buy it."
    ),
    "alfworld": (
        "You are in a room of a household and act by text commands. The first message shows the room and, behind "
        '"Your task is to:", the task. Objects and receptacles have numbers, such as mug 1 or drawer 2: use the names '
        "exactly as the room shows them. You see what lies on or in a receptacle only once you are there and it is "
        "open, and you can carry one object at a time."
    ),
    "deepsearch": (
        "You answer a question with the help of a search engine over an encyclopedia. Most questions need facts from "
        "several pages: find one, then search for the next. Rely on what the pages say rather than on what you "
        "remember."
    ),
}

_ACTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "webshop": (
        ("search[keywords]", "list products for these keywords, ten a page; works on every page"),
        ("click[product code]", "open a product of the list, for example click[b09abc1234]"),
        (
            "click[option value]",
            "choose an option on a product's page, for example click[red]; the page stays as it is",
        ),
        ("click[description]", "read about the product; likewise click[features] and click[reviews]"),
        ("click[next >]", "show more results; click[< prev] goes back to the page before"),
        ("click[back to search]", "start over"),
        ("click[buy now]", "buy the product of this page with the options chosen so far"),
    ),
    "alfworld": (
        ("go to RECEPTACLE", "walk there and see what is on it, or in it if it is open"),
        ("open RECEPTACLE", "open it and see what is inside; close RECEPTACLE closes it"),
        ("take OBJECT from RECEPTACLE", "pick an object up"),
        (
            "move OBJECT to RECEPTACLE",
            "put it down there; some rooms say put OBJECT in/on RECEPTACLE instead",
        ),
        ("clean OBJECT with RECEPTACLE", "at a sinkbasin, with the object in hand"),
        ("heat OBJECT with RECEPTACLE", "at a microwave, with the object in hand"),
        ("cool OBJECT with RECEPTACLE", "at a fridge, with the object in hand"),
        ("use OBJECT", "switch a lamp on; to look at something under a lamp, hold it and use the lamp"),
        ("examine NAME", "look at an object or a receptacle closely"),
        ("look", "look around; inventory shows what you carry, help all commands"),
    ),
    "deepsearch": (
        ("search[query]", "show the passages that fit the query best"),
        ("open[title]", "read the page of that title, or of a passage's id, from its beginning"),
        ("next", "read on in the open page"),
        ("answer[text]", "give the answer, and end"),
    ),
}
"""Commands as the environment understands them, and what they do."""

_END: dict[str, str] = {
    "webshop": (
        "Names are written exactly as they stand on the page; letter case does not matter. The purchase ends the "
        "episode and is then judged, so choose every option that is asked for first. Without a purchase nothing is won."
    ),
    "alfworld": (
        "The episode ends by itself as soon as the task is done. A command that is not possible is answered by "
        '"Nothing happens."'
    ),
    "deepsearch": (
        "The first answer ends the episode and is compared with the known one, so give it as short as possible and "
        "without explanation: a name, a number, a date, yes or no."
    ),
}


def known(env: str) -> str:
    """The name of a benchmark that has instructions; `KeyError` names those that have."""
    if env not in BRIEF:
        raise KeyError(f"no system prompt for {env!r}; expected one of {sorted(BRIEF)}")
    return env


def full(env: str, form: Form, max_steps: int | None) -> str:
    """The system message of a language model in a form of answers; `KeyError` for an unknown benchmark.

    max_steps: turns of an episode, where they are limited.
    """
    actions = [f"- {form.command(action)}: {meaning}" for action, meaning in _ACTIONS[known(env)]]
    limit = "" if max_steps is None else f" You have at most {max_steps} turns."
    return "\n".join(
        [
            _TASK[env],
            "",
            "Each turn you give exactly one of these actions, and are then shown what it did:",
            *actions,
            "",
            f"{_END[env]}{limit} An action that is not understood costs a turn.",
            "",
            "Answer each turn in exactly this form, with the action that you choose, and write nothing after it:",
            answer_form(env, form),
        ]
    )


def answer_form(env: str, form: Form) -> str:
    """A response with words in place of the thought and the benchmark's first action in place of another."""
    return form.format("why you do this next", _ACTIONS[env][0][0] if env in _ACTIONS else "an action")


def reminder(env: str, form: Form) -> str:
    """The end of a prompt that stands alone: what form to answer in."""
    return f"Give one action now, in this form, with the action that you choose:\n{answer_form(env, form)}"


def announce(examples: int) -> str:
    """The end of a system message that worked examples follow."""
    shown = "One example" if examples == 1 else f"{examples} examples"
    return f"{shown} of a whole episode, won in this way, come{'s' if examples == 1 else ''} first. Then yours begins."
