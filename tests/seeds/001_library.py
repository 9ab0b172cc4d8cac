"""The seed's last example: what does building a real object call? With the library named on the command line."""
import importlib.util
import os
import sys
from types import SimpleNamespace

spec = importlib.util.spec_from_file_location("__main__", os.path.join(os.path.dirname(os.path.abspath(__file__)), "001.py"))
seed = importlib.util.module_from_spec(spec)
spec.loader.exec_module(seed)
MyCallback, set_eval_frame = seed.MyCallback, seed.set_eval_frame


def build_parser():
    from argparse import ArgumentParser
    return lambda: ArgumentParser("prog", description="x").add_argument("--level", type=int, default=3)


def build_server():
    from http.server import HTTPServer, SimpleHTTPRequestHandler
    return lambda: HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler).server_close()


def build_config():
    from configparser import ConfigParser
    # With comments, 3.14 makes two generators before it runs one: the profile sees a generator as it runs, the hook as it is made.
    return lambda: ConfigParser(comment_prefixes=()).read_string("[a]\nb = 1\n")


def build_message():
    from email.message import EmailMessage
    return lambda: EmailMessage().set_content("text")


def eval_frame_mwe(build, skip, hit=False):
    callback = MyCallback(skip=skip, hit=hit)
    prior = set_eval_frame(callback)

    net = build()

    set_eval_frame(prior)


def profiled(build):
    """The same by sys.setprofile: one line for each code object's first call, as the page prints them."""
    seen, names = set(), []

    def profile(frame, event, arg):
        if event == "call" and id(frame.f_code) not in seen:
            seen.add(id(frame.f_code))
            keep.append(frame.f_code)
            # inspect.getmodule() does not find the module of a real frame whose file is <frozen>.
            names.append(seed.full_function_name(SimpleNamespace(f_code=frame.f_code, f_locals=frame.f_locals,
                                                                 __module__=frame.f_globals["__name__"])))
    keep = []
    sys.setprofile(profile)
    build()
    sys.setprofile(None)
    for n, name in enumerate(names, 1):
        print(f"calling the {n}-th function: {name}\nthe function has 0 cache entries now.")


if __name__ == "__main__":
    build = globals()["build_" + sys.argv[1]]()
    build()  # imports, caches
    if sys.argv[2] == "profiled":
        profiled(build)
    else:
        eval_frame_mwe(build, skip=sys.argv[2] == "skip", hit=sys.argv[2] == "hit")
