/* tracer/evaluator/answer.c -- what a callback answers.
 *
 * Runs in: the traced process, under the GIL.
 *
 * An answer's attributes may be the program's code (tracer/evaluator/cache.h has the rule): it is read to its end into
 * values that are owned, before anything is done about it. */
#include "tracer/evaluator/cache.h"

int answer_strategy(PyObject *strategy, struct code_actions *actions)
{
    static const char *const names[2] = {"cur_action", "recursive_action"};
    enum frame_action *const action[2] = {&actions->own, &actions->callees};

    for (int i = 0; i < 2; i++) {
        PyObject *value = tracer_attribute(strategy, names[i]);
        long number = value ? PyLong_AsLong(value) : -1;

        Py_XDECREF(value);
        if (number < ACTION_DEFAULT || number > ACTION_RUN_ONLY) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "%s: %ld is not a FrameAction", names[i], number);
            return -1;
        }
        *action[i] = (enum frame_action)number;
    }
    return 0;
}

int answer_read(PyObject *result, struct answer *answer)
{
    PyObject *strategy = NULL, *name;
    int status = -1, truth;

    *answer = (struct answer){0};
    if (result == Py_None || result == shim_settings.skip_recursively || result == shim_settings.limit_reached) {
        answer->actions.own = result == shim_settings.limit_reached ? ACTION_RUN_ONLY : ACTION_SKIP;
        answer->actions.callees = result == Py_None ? ACTION_DEFAULT : answer->actions.own;
        answer->for_code = true;
        return 0;
    }
    name = PyUnicode_InternFromString("frame_exec_strategy");
    if (!name || compat_optional_attribute(result, name, &strategy) < 0)
        goto done;
    if (!strategy) { /* the older protocol: the GuardedCode itself */
        answer->guarded = Py_NewRef(result);
        status = 0;
        goto done;
    }
    if (answer_strategy(strategy, &answer->actions))
        goto done;
    Py_SETREF(strategy, tracer_attribute(result, "apply_to_code"));
    truth = strategy ? PyObject_IsTrue(strategy) : -1;
    if (truth < 0)
        goto done;
    answer->guarded = tracer_attribute(result, "guarded_code");
    if (!answer->guarded)
        goto done;
    if (answer->guarded == Py_None)
        Py_CLEAR(answer->guarded);
    if (!answer->guarded && !(answer->reason = tracer_attribute(result, "skip_reason")))
        PyErr_Clear();
    answer->for_code = truth;
    status = 0;
done:
    Py_XDECREF(name);
    Py_XDECREF(strategy);
    return status;
}

enum outcome answer_outcome(const struct answer *answer, const struct front *front)
{
    if (answer->guarded)
        return OUTCOME_COMPILED;
    return !front->limits && answer->actions.own == ACTION_RUN_ONLY ? OUTCOME_LIMIT : OUTCOME_DECLINED;
}
