"""A one-way constraint solver that keeps variables in step, incrementally.

After the DeltaBlue algorithm (Freeman-Benson, Maloney, Borning: "An
incremental constraint solver", CACM 1990). A constraint computes one of its
variables, its output, from the others. Each variable knows its walkabout
strength: the weakest constraint that could be revoked to let it change. A new
constraint takes the output that is cheapest to take, which may override
another constraint, which then looks for another output of its own.
"""


class Strength:
    def __init__(self, rank, name):
        self.rank = rank  # 0 is the strongest
        self.name = name

    def stronger(self, other):
        return self.rank < other.rank

    def weakest(self, other):
        return other if self.stronger(other) else self


REQUIRED, STRONG, PREFERRED, DEFAULT, WEAKEST = STRENGTHS = [
    Strength(rank, name)
    for rank, name in enumerate(["required", "strong", "preferred", "default", "weakest"])
]


class Variable:
    def __init__(self, value=0):
        self.value = value
        self.constraints = []
        self.determined_by = None
        self.mark = 0
        self.walkabout = WEAKEST
        self.stays = True  # cannot change until a constraint is added or removed

    def is_marked(self, mark):
        return self.mark == mark

    def is_known(self, mark):
        return self.is_marked(mark) or self.stays or self.determined_by is None


class Constraint:
    is_input = False  # its output comes from outside, so it never stays

    def __init__(self, strength, *variables):
        self.strength = strength
        self.variables = variables
        self.output = None

    def is_satisfied(self):
        return self.output is not None

    def may_take(self, variable, mark):
        return not variable.is_marked(mark) and self.strength.stronger(variable.walkabout)

    def attach(self):
        for variable in self.variables:
            variable.constraints.append(self)

    def detach(self):
        for variable in self.variables:
            variable.constraints.remove(self)

    def release(self):
        self.output = None

    def inputs_known(self, mark):
        for variable in self.inputs():
            if not variable.is_known(mark):
                return False
        return True

    def satisfy(self, mark, planner):
        """Takes an output; returns the constraint that lost it, or None."""
        self.output = self.choose_output(mark)
        if self.output is None:
            if self.strength is REQUIRED:
                raise ArithmeticError("a required constraint cannot be satisfied")
            return None
        for variable in self.inputs():
            variable.mark = mark
        overridden = self.output.determined_by
        if overridden is not None:
            overridden.release()
        self.output.determined_by = self
        if not planner.propagate(self, mark):
            raise ArithmeticError("constraints form a circle")
        self.output.mark = mark
        return overridden

    def update_output(self):
        output = self.output
        output.walkabout = self.strength
        output.stays = not self.is_input
        for variable in self.inputs():
            output.stays = output.stays and variable.stays
        rival = self.rival()
        if rival is not None:
            output.walkabout = self.strength.weakest(rival.walkabout)
        if output.stays:
            self.execute()

    def choose_output(self, mark):
        raise NotImplementedError

    def inputs(self):
        raise NotImplementedError

    def rival(self):
        """The variable that could be the output instead, or None."""
        return None

    def execute(self):
        """Computes the output."""


class Stay(Constraint):
    def choose_output(self, mark):
        variable, = self.variables
        return variable if self.may_take(variable, mark) else None

    def inputs(self):
        return ()


class Edit(Stay):
    is_input = True


class Equal(Constraint):
    def choose_output(self, mark):
        left, right = self.variables[0], self.variables[1]
        if right.is_marked(mark) or right.walkabout.stronger(left.walkabout):
            return left if self.may_take(left, mark) else None
        return right if self.may_take(right, mark) else None

    def rival(self):
        left, right = self.variables[0], self.variables[1]
        return right if self.output is left else left

    def inputs(self):
        return (self.rival(),)

    def execute(self):
        self.output.value = self.rival().value


class Scale(Equal):
    """right == left * factor + offset; factor and offset are only ever read."""

    def inputs(self):
        return (self.rival(), self.variables[2], self.variables[3])

    def execute(self):
        left, right, factor, offset = self.variables
        if self.output is right:
            right.value = left.value * factor.value + offset.value
        else:
            left.value = (right.value - offset.value) // factor.value


class Planner:
    def __init__(self):
        self.last_mark = 0

    def new_mark(self):
        self.last_mark += 1
        return self.last_mark

    def add(self, constraint):
        constraint.attach()
        self.enforce(constraint)

    def enforce(self, constraint):
        mark = self.new_mark()
        while constraint is not None:
            constraint = constraint.satisfy(mark, self)

    def remove(self, constraint):
        output = constraint.output
        constraint.release()
        constraint.detach()
        if output is None:
            return
        freed = self.forget(output)
        for strength in STRENGTHS:
            for candidate in freed:
                if candidate.strength is strength and not candidate.is_satisfied():
                    self.enforce(candidate)

    def consumers(self, variable):
        return [c for c in variable.constraints if c is not variable.determined_by and c.is_satisfied()]

    def propagate(self, constraint, mark):
        todo = [constraint]
        while todo:
            following = todo.pop()
            if following.output.is_marked(mark):
                self.remove(constraint)
                return False
            following.update_output()
            todo.extend(self.consumers(following.output))
        return True

    def forget(self, output):
        """Nothing determines `output` now: returns what could, downstream."""
        output.determined_by = None
        output.walkabout = WEAKEST
        output.stays = True
        freed = []
        todo = [output]
        while todo:
            variable = todo.pop()
            for constraint in variable.constraints:
                if not constraint.is_satisfied():
                    freed.append(constraint)
            for constraint in self.consumers(variable):
                constraint.update_output()
                todo.append(constraint.output)
        return freed

    def plan(self, sources):
        """The constraints to execute, in order, when the sources have changed."""
        mark = self.new_mark()
        steps = []
        todo = list(sources)
        while todo:
            constraint = todo.pop()
            if not constraint.output.is_marked(mark) and constraint.inputs_known(mark):
                steps.append(constraint)
                constraint.output.mark = mark
                todo.extend(self.consumers(constraint.output))
        return steps


def change(planner, variable, values):
    """Edits a variable through the values; yields after each."""
    edit = Edit(PREFERRED, variable)
    planner.add(edit)
    steps = planner.plan([edit])
    for value in values:
        variable.value = value
        for constraint in steps:
            constraint.execute()
        yield value
    planner.remove(edit)


def chain(length):
    """A row of equal variables: an edit of the first must reach the last."""
    planner = Planner()
    variables = [Variable() for _ in range(length)]
    for left, right in zip(variables, variables[1:]):
        planner.add(Equal(REQUIRED, left, right))
    planner.add(Stay(DEFAULT, variables[-1]))
    return sum(variables[-1].value == value for value in change(planner, variables[0], range(20)))


def projection(length):
    """Many pairs right == left * factor + offset; each side is edited in turn."""
    planner = Planner()
    factor, offset = Variable(10), Variable(1000)
    planner.add(Stay(DEFAULT, factor))
    planner.add(Stay(DEFAULT, offset))
    pairs = []
    for i in range(length):
        left, right = Variable(i), Variable(i)
        planner.add(Stay(DEFAULT, left))
        planner.add(Scale(REQUIRED, left, right, factor, offset))
        pairs.append((left, right))
    left, right = pairs[0]
    good = sum(right.value == value * 10 + 1000 for value in change(planner, left, range(17, 22)))
    good += sum(left.value == (value - 1000) // 10 for value in change(planner, right, range(1050, 1100, 10)))
    for _ in change(planner, factor, [5]):
        pass
    good += sum(right.value == left.value * factor.value + offset.value for left, right in pairs)
    return good


def run(times):
    for _ in range(times):
        result = chain(60), projection(60)
    return result


def check(result):
    return result == (20, 5 + 5 + 60)  # every value arrived, see the sums above
