"""A program with secrets in variables, dicts and command lines: none of them may be in its trace, unless --no-redact is given.

    SECRETS="hunter2 swordfish 424242424 535353535" dyntrace run tests/programs/secrets_work.py --password=hunter2 --token swordfish
"""
import dataclasses
import os
import subprocess
import sys

from shim_help import Recorder, copied, under

from dyntrace import guards
from dyntrace.guards import L, GuardTree
from dyntrace.types import GuardedCode

WORDS = os.environ.pop("SECRETS").split()
WORD, OTHER = WORDS[:2]
NUMBER, ANOTHER = map(int, WORDS[2:])


@dataclasses.dataclass
class Config:
    user: str
    password: str


def login(password, token, tokens, api_key, config, settings):
    return len(tokens)


def answer(frame, entry, state):
    tree = GuardTree(
        [
            guards.EQUALS_MATCH(L["password"]),
            guards.EQUALS_MATCH(L["token"]),
            guards.EQUALS_MATCH(L["tokens"]),
            guards.EQUALS_MATCH(L["api_key"]),
            guards.EQUALS_MATCH(L["settings"]),
            guards.EQUALS_MATCH(L["settings"]["db_password"]),
            guards.EQUALS_MATCH(L["config"]),
            guards.LAMBDA(lambda value: value != OTHER, f"L['password'] != {OTHER!r}", L["password"]),
        ],
        example=frame.f_locals,
    )
    return GuardedCode(copied(frame.f_code), tree)


def settings(password):
    return {"user": "nobody", "db_password": password, "Authorization": "Bearer " + password}


under(
    Recorder(login=answer),
    lambda: [
        login(WORD, WORD, "plain tokens", NUMBER, Config("nobody", WORD), settings(WORD)),
        login(OTHER, OTHER, "other tokens", ANOTHER, Config("nobody", OTHER), settings(OTHER)),
        login(WORD, 5, "plain tokens", ANOTHER, Config("nobody", OTHER), settings(WORD)),
    ],
)
# a child has secrets in its command line, too
subprocess.run([sys.executable, "-c", "pass", "API_KEY=" + WORD, "--db-password", OTHER, f"https://me:{WORD}@host/?token={OTHER}"], check=True)
