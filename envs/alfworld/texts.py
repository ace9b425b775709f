"""What the engine says in games that bring no grammar of their own: the spellings of the official version 0.4."""

from __future__ import annotations

from envs.alfworld.grammar import Action, Grammar, Rule, parse_query

_CONTENT = "[{o.indefinite + ' ' + o.name | inreceptacle(o:object, r:receptacle)}]"
_HERE = "atlocation(a:agent, l:location) & receptacleatlocation(r:receptacle, l:location)"
_BESIDE = (
    "atlocation(a:agent, l:location) & objectatlocation(o:object, l:location) & "
    "receptacleatlocation(r:receptacle, l:location) & not_inreceptacle(o:object, r:receptacle)"
)

_ACTIONS = {
    "gotolocation": ("go to {r}", "You arrive at {r.name}. #view#"),
    "openobject": ("open {r}", "You open the {r.name}. #view#"),
    "closeobject": ("close {r}", "You close the {r.name}."),
    "pickupobject": ("take {o} from {r}", "You pick up the {o.name} from the {r.name}."),
    "putobject": ("move {o} to {r}", "You move the {o.name} to the {r.name}."),
    "inventory": ("inventory", "#inventory#"),
    "examinereceptacle": ("examine {r}", "#view#"),
    "examineobject": ("examine {o}", "#thing#"),
    "toggleobject": ("use {o}", "You turn on the {o.name}."),
    "heatobject": ("heat {o} with {r}", "You heat the {o.name} using the {r.name}."),
    "cleanobject": ("clean {o} with {r}", "You clean the {o.name} using the {r.name}."),
    "coolobject": ("cool {o} with {r}", "You cool the {o.name} using the {r.name}."),
    "sliceobject": ("slice {co} with {ko}", "You sliced the {co.name} with the {ko.name}."),
    "look": ("look", "#look#"),
}

_COMMANDS = (
    ("look", "look around your current location", 35),
    ("inventory", "check your current inventory", 35),
    ("go to (receptacle)", "move to a receptacle", 35),
    ("open (receptacle)", "open a receptacle", 35),
    ("close (receptacle)", "close a receptacle", 35),
    ("take (object) from (receptacle)", "take an object from a receptacle", 35),
    ("move (object) to (receptacle)", "place an object in or on a receptacle", 33),
    ("examine (something)", "examine a receptacle or an object", 35),
    ("use (object)", "use an object", 35),
    ("heat (object) with (receptacle)", "heat an object using a receptacle", 35),
    ("clean (object) with (receptacle)", "clean an object using a receptacle", 35),
    ("cool (object) with (receptacle)", "cool an object using a receptacle", 35),
    ("slice (object) with (object)", "slice an object using a sharp object", 35),
)
"""(command, meaning, column of the meaning)"""


def _looks() -> list[tuple[str, str]]:
    """Conditions on an object and how it then looks, in order of precedence."""
    hot, clean, cool = "ishot(o:object)", "isclean(o:object)", "iscool(o:object)"
    sliced = "issliced(o:object)"
    inside = "[{o2.indefinite + ' ' + o2.name | inreceptacleobject(o2:object, o:object)}]"
    looks = [("isreceptacleobject(o:object)", f"This is a normal {{o.name}}. In it, you see {inside}.")]
    for conditions, words in (
        ((clean, hot, sliced), "hot and clean sliced"),
        ((clean, cool, sliced), "cool and clean sliced"),
        ((clean, sliced), "clean sliced"),
        ((hot, sliced), "hot sliced"),
        ((cool, sliced), "cool sliced"),
        ((clean, hot), "hot and clean"),
        ((clean, cool), "cool and clean"),
        ((hot,), "hot"),
        ((clean,), "clean"),
        ((cool,), "cold"),
    ):
        looks.append((" & ".join(conditions), f"This is a {words} {{o.name}}."))
    looks.append(("toggleable(o:object) & istoggled(o:object)", "This {o.name} is on."))
    looks.append(("sliceable(o:object) & issliced(o:object)", "This is a sliced {o.name}."))
    looks.append(("", "There's nothing special about {o.name}."))
    return looks


def _rules() -> dict[str, list[tuple[str, str]]]:
    room = "[{r.indefinite + ' ' + r.name | receptacleatlocation(r:receptacle, l:location)}]"
    beside = f"[{{o.indefinite + ' ' + o.name | {_BESIDE}}}]"
    return {
        "intro": [("", "-= Welcome to TextWorld, ALFRED! =-\n\n#look#\n\n#task#")],
        "look": [
            (_HERE, f"You are facing the [{{r.name | {_HERE}}}]. Next to it, you see {beside}."),
            ("", f"You are in the middle of a room. Looking quickly around you, you see {room}."),
        ],
        "inventory": [
            (
                "holdsany(a:agent)",
                "You are carrying: [{o.indefinite + ' ' + o.name | holds(a:agent, o:object)}].",
            ),
            ("", "You are not carrying anything."),
        ],
        "view": [
            (
                "openable(r:receptacle) & opened(r:receptacle)",
                f"The {{r.name}} is open. In it, you see {_CONTENT}.",
            ),
            ("openable(r:receptacle)", "The {r.name} is closed."),
            ("", f"On the {{r.name}}, you see {_CONTENT}."),
        ],
        "thing": _looks(),
        "list_empty": [("", "nothing")],
        "list_separator": [("", ", ")],
        "list_last_separator": [("", ", and ")],
    }


def _help() -> str:
    lines = [f"  {command}:".ljust(column + 1) + meaning for command, meaning, column in _COMMANDS]
    return "\n".join(["Available commands:", *lines, ""])


def built_in_grammar(task: str) -> Grammar:
    """The built-in texts for a task such as `put a clean mug in desk.`"""
    return _BUILT_IN.with_task(task)


_BUILT_IN = Grammar(
    {name: Action(*texts) for name, texts in _ACTIONS.items()} | {"help": Action("help", _help())},
    {
        name: tuple(Rule(parse_query(condition), text) for condition, text in rules)
        for name, rules in _rules().items()
    },
)
