# Run by `dyntrace run --set`, before the program. Prints "NUMBER WHY" for each of the settings argv[3:] that cannot be. argv[1] is
# _settings.py; argv[2] is 1 where the program runs with this very interpreter, whose torch is looked at then.
import sys
sys.path[:] = filter(None, sys.path)  # nothing is imported from where the user happens to be
scope = {'__name__': 'dyntrace._settings'}
with open(sys.argv[1], encoding='utf-8') as source:
    exec(compile(source.read(), sys.argv[1], 'exec'), scope)
for number, why in scope['refused'](sys.argv[3:], sys.argv[2] == '1'):
    print(number, why)
