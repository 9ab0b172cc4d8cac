# Which Python is this? Prints implementation, major, minor, and the suffix of extensions. Python 2 must be able to run it.
import sys
try:
    from _imp import extension_suffixes
except ImportError:
    extension_suffixes = lambda: ['-']
name = getattr(getattr(sys, 'implementation', None), 'name', 'cpython')
print('%s %d %d %s' % (name, sys.version_info[0], sys.version_info[1], extension_suffixes()[0]))
