/* A program with Python inside: what test_interpreters.py runs. Arguments:
 *
 *     again N CODE      CODE in the main interpreter, which is initialised and finalised N times
 *     taken CODE        the same twice, and the second time another has the code-extra index that was ours
 *     legacy N CODE     CODE in N sub-interpreters of the old kind, one after the other, then once in the main one */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030c0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#endif

static int initialize(int site)
{
    PyConfig config;
    PyStatus status;

    PyConfig_InitPythonConfig(&config);
    config.site_import = site;
    status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    return PyStatus_Exception(status) ? -1 : 0;
}

int main(int argc, char **argv)
{
    int failed = argc < 3;

    if (!failed && !strcmp(argv[1], "again")) {
        for (int i = 0; i < atoi(argv[2]); i++) {
            failed |= initialize(1) || PyRun_SimpleString(argv[3]);
            failed |= Py_FinalizeEx();
        }
    } else if (!failed && !strcmp(argv[1], "taken")) {
        for (int i = 0; i < 2; i++) {
            failed |= initialize(0);
            if (i)
                failed |= PyUnstable_Eval_RequestCodeExtraIndex(NULL) < 0;
            failed |= PyRun_SimpleString("import site; site.main()") || PyRun_SimpleString(argv[2]);
            failed |= Py_FinalizeEx();
        }
    } else if (!failed) {
        failed |= initialize(1);
        for (int i = 0; i < atoi(argv[2]); i++) {
            PyThreadState *main = PyThreadState_Get(), *sub = Py_NewInterpreter();
            failed |= !sub || PyRun_SimpleString(argv[3]);
            Py_EndInterpreter(sub);
            PyThreadState_Swap(main);
        }
        failed |= PyRun_SimpleString(argv[3]);
        failed |= Py_FinalizeEx();
    }
    return failed ? 1 : 0;
}
