# Checks the settings argv[3:] of `dyntrace run --set` before the program runs. Prints "NUMBER WHY" for each invalid setting.
# argv[1] is the path of _settings.py. argv[2] is 1 if the program runs with this interpreter: its torch is examined then.
import sys
sys.path[:] = filter(None, sys.path)  # import nothing from the working directory
scope = {'__name__': 'dyntrace._settings'}
with open(sys.argv[1], encoding='utf-8') as source:
    exec(compile(source.read(), sys.argv[1], 'exec'), scope)
for number, why in scope['refused'](sys.argv[3:], sys.argv[2] == '1'):
    print(number, why)
