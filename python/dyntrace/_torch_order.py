"""The order in which torch checks an entry's guards, and how many guards ran in a failed check.

Runs in: the traced process, under the shim, after a check has failed (_torch_guards.Guards).

torch moves failing guards forward: if a child other than the first has failed, the manager sorts
its children by how often each has failed. check() sorts before it returns, so afterwards torch's
tree shows the order of the next check. The failed check itself used the order before the sort. So
an Order keeps the order that it read last.

    node     0  root                     rows 0, 1        _start[0] = 0
             1    L['d']                      2           _start[1] = 2     _parent[1] = 0
             2      L['d']['a']               3           _start[2] = 3     _parent[2] = 1
             3    L['x']                      4, 5        _start[3] = 4     _parent[3] = 0
             4  epilogue                      6           _start[4] = 6     _parent[4] = -1

Nodes (managers) and rows (guards) are numbered when the entry is made, parents before children. So
a subtree is a range of numbers. `_moved` has a list of children only for nodes whose children have
changed places.

torch counts each manager's failures. If the root's count has risen by more than our failed
check explains, another check has failed that we did not see: the program called it, or recording
was paused. In that case the order of our failed check is unknown, and we read the order of the next
check.

A relation (NO_TENSOR_ALIASING, ...) is a guard that belongs to several managers. It fails at that
one of its managers which is checked last. This is another manager after managers have changed
places. So if there are relations and the order has changed, the failed manager is the one whose
count has risen.
"""

import array
import bisect

from ._torch_values import read_attribute_name

__all__ = ["Order"]

RELATIONS = frozenset(
    ("NO_TENSOR_ALIASING", "OBJECT_ALIASING", "STORAGE_OVERLAPPING", "SYMBOLIC_SHAPE_GUARD")
)

# longest array for which std::sort() of libstdc++ and libc++ is stable: it keeps the order of equal
# items
SORTED_STABLY = 16


class Unread(Exception):
    """Raised if torch's tree no longer has the managers that it had when the entry was made."""


def make_child_key(parent, source, accessor):
    """Return a key that identifies a child manager among its siblings: a hash of its SOURCE. A
    manager that exists only for a hasattr() has the same source as its parent (PARENT), so the
    attribute's name is added. ACCESSOR() returns the child's accessor."""
    if source == parent:
        step = accessor()
        if type(step).__name__ == "GetAttrGuardAccessor":
            source = "%s.%s" % (source, read_attribute_name(step))
    return hash(source)


def get_fail_count(root):
    """Return how often ROOT has failed, or None if this torch does not count failures."""
    count = getattr(root, "fail_count", None)
    return count() if count is not None else None


class Order:
    """The present order in which torch checks the guards of an entry. Holds only numbers."""

    __slots__ = (
        "_parent",
        "_end",
        "_start",
        "_key",
        "_pair",
        "_moved",
        "_fails",
        "_unmoved_results",
        "_relations",
        "_counts",
    )

    def __init__(self, root):
        self._parent, self._end, self._start, self._key = (array.array("q") for _ in range(4))
        # for each node: 1 if the node guards a key or a value of a dict whose order matters, and so
        # never changes its position
        self._pair = bytearray()
        # node -> the node's movable children in the order of checking; only for nodes whose
        # children have changed places
        self._moved = {}
        # the root's count of failures when the order was last read from torch; None: the order is
        # unknown
        self._fails = get_fail_count(root)
        # cached results of find_failed_guard() for failures that moved nothing: (ordinal, number of
        # guards that torch counted) -> (ordinal, guards that ran)
        self._unmoved_results = {}
        # the ordinals of the relations: guards that compare values of several sources
        self._relations = []
        # node -> its count of failures, or None if it is not known; kept only if there are
        # relations
        self._counts = {}

    # ---- numbering the tree, when the entry is made ----

    def add_manager(self, step, rows):
        """Add the manager of STEP, a step of the walk through the tree. ROWS is the number of
        guards before the manager."""
        for at, guard in enumerate(step.guards):
            if guard[0] in RELATIONS:
                self._relations.append(rows + at)
        self._parent.append(step.parent.serial if step.parent is not None else -1)
        self._start.append(rows)
        self._key.append(hash(step.source) if type(step.index) is int else 0)
        self._pair.append(type(step.index) is tuple)

    def finish_walk(self, rows):
        """Finish the numbering after all managers have been added. ROWS is the number of guards."""
        count = len(self._parent)
        self._start.append(rows)
        self._end.extend(range(1, count + 1))
        for node in range(count - 1, 0, -1):
            parent = self._parent[node]
            if parent >= 0 and self._end[parent] < self._end[node]:
                self._end[parent] = self._end[node]

    # ---- the order that was last read from torch ----

    def _list_first_children(self, node):
        """Return the children of NODE in the order that they had when the entry was made. Children
        that can move come first."""
        found, child, end = [], node + 1, self._end[node]
        while child < end:
            found.append(child)
            child = self._end[child]
        return found

    def _list_children(self, node):
        born, moved = self._list_first_children(node), self._moved.get(node)
        return born if moved is None else moved + born[len(moved) :]

    def _find_node(self, ordinal):
        return bisect.bisect_right(self._start, ordinal) - 1

    def _list_path(self, node):
        """Return the nodes from the root to NODE."""
        path = [node]
        while self._parent[path[-1]] >= 0:
            path.append(self._parent[path[-1]])
        path.reverse()
        return path

    def count_guards_before(self, ordinal):
        """Return how many guards are checked before guard ORDINAL."""
        start, end = self._start, self._end
        node = self._find_node(ordinal)
        place = ordinal - start[node]
        while self._parent[node] >= 0:
            parent = self._parent[node]
            moved = () if self._pair[node] else self._moved.get(parent, ())
            if moved:
                place += start[parent + 1] - start[parent]
                for child in moved[: moved.index(node)]:
                    place += start[end[child]] - start[child]
            else:
                place += start[node] - start[parent]
            node = parent
        return place + start[node]  # torch checks the guards of its epilogue after all others

    def list_ordinals(self):
        """Return the ordinals of all guards in the order of checking."""
        last = len(self._parent) - 1
        todo = [node for node in range(last, -1, -1) if self._parent[node] < 0]
        found, moved = [], sorted(self._moved)
        while todo:
            node = todo.pop()
            at = bisect.bisect_left(moved, node)
            if at == len(moved) or moved[at] >= self._end[node]:
                found.extend(range(self._start[node], self._start[self._end[node]]))
            else:
                found.extend(range(self._start[node], self._start[node + 1]))
                todo.extend(reversed(self._list_children(node)))
        return found

    def is_current(self, root):
        """Is the order that was last read still the order of ROOT? It is if no check has failed
        since then."""
        return self._fails is not None and self._fails == get_fail_count(root)

    # ---- after a failed check ----

    def find_failed_guard(self, ordinal, count, root):
        """Find out at which guard the check of ROOT failed. A second check of the same call has
        just failed, in the new order, at guard ORDINAL after COUNT guards. Returns a tuple:

            ordinal of the guard that ended the first check, or -1
            how many guards ran in the first check, with the guard that ended it; 0 if not known
            has the order changed since it was last read?
        """
        fails, before = get_fail_count(root), self._fails
        if before is None:
            return ordinal, 0, False
        self._fails = fails
        path = self._list_path(self._find_node(ordinal))
        counted = path[0] == 0  # torch does not count a failure of the epilogue
        if fails != before + counted:
            return ordinal, 0, self._read_all(root)
        settled = self._unmoved_results.get((ordinal, count))
        if settled is not None:
            self._count_failure(path)
            return *settled, False
        try:
            if self._relations:
                return self._find_with_relations(ordinal, count, path, root)
            return self._find_without_relations(ordinal, count, path, root)
        except Unread:
            return ordinal, 0, self._read_all(root)

    def note_unknown_failure(self, root):
        """Note that a check of ROOT has failed at an unknown guard. Returns True if the order has
        changed since it was last read."""
        if self._fails is None or self._fails == get_fail_count(root):
            return False
        self._fails = get_fail_count(root)
        return self._read_all(root)

    def _find_without_relations(self, ordinal, count, path, root):
        """find_failed_guard() for an entry without relations. Both checks failed at guard ORDINAL.
        PATH has the nodes from the root to this guard; only children of these nodes can have
        moved."""
        ran, changed, unstable, manager = self.count_guards_before(ordinal) + 1, False, False, root
        sorts = [
            not self._pair[child] and self._list_children(node)[0] != child
            for node, child in zip(path, path[1:])
        ]
        if not any(sorts):
            self._unmoved_results[ordinal, count] = ordinal, ran
            return ordinal, ran, False
        for node, child, is_sorted in zip(path, path[1:], sorts):
            if self._pair[child]:
                found = self._read_pairs(manager, node)
            else:
                found = self._read_movable_children(manager, node)
            if is_sorted:
                changed |= self._store_order(node, [each for each, _ in found])
                unstable |= len(found) > SORTED_STABLY
            manager = dict(found)[child]
        # The sort may have been unstable: then it may also have swapped children that failed
        # equally often, and the second check may have met another failing guard first. But if this
        # manager has failed before, it is the manager that failed in the first check.
        certain = not unstable or manager.fail_count() > 0
        return ordinal, ran if certain else 0, changed

    # ---- which guard failed, if the entry has relations ----

    def _find_with_relations(self, ordinal, count, path, root):
        """find_failed_guard() for an entry with relations: the failed guard belongs to a manager
        whose count of failures has risen."""
        places = {each: self.count_guards_before(each) for each in (ordinal, *self._relations)}
        managers, changed = {0: root}, False
        for each in places:
            for node in self._list_path(self._find_node(each)):
                if node not in managers and self._parent[node] >= 0:
                    changed |= self._read_children(managers, self._parent[node])
        counts = {node: manager.fail_count() for node, manager in managers.items()}
        has_failed = {node for node in counts if counts[node] != self._counts.get(node, 0)}
        self._counts.update(counts)
        node = path[-1]
        earlier = [
            each for each in self._relations if self._find_node(each) == node and each < ordinal
        ]
        at = [each for each in self._relations if self._find_node(each) in has_failed]
        if not changed:  # nothing has moved, so both checks failed at the same guard
            found = ordinal
            self._unmoved_results[ordinal, count] = ordinal, places[ordinal] + 1
        elif node in has_failed and not earlier:
            found = ordinal
        elif len(at) == 1:
            found = at[0]
        else:
            return ordinal, 0, changed
        return found, places[found] + 1, changed

    def _count_failure(self, path):
        """Add 1 to the counts of failures of all managers on PATH: a guard of the last manager has
        failed."""
        if not self._relations or path[0] != 0:
            return
        for at, node in enumerate(path):
            count = self._counts.get(node, 0)
            of_pair = at + 1 < len(path) and self._pair[path[at + 1]]
            self._counts[node] = None if of_pair or count is None else count + 1

    # ---- reading the order from torch's tree ----

    def _store_order(self, node, order):
        """Store ORDER, the present order of NODE's movable children. Returns True if it differs
        from the stored order."""
        born = self._list_first_children(node)[: len(order)]
        if order == self._moved.get(node, born):
            return False
        if order == born:
            del self._moved[node]
        else:
            self._moved[node] = order
        self._unmoved_results.clear()
        return True

    def _read_movable_children(self, manager, node):
        """Read the present order of NODE's movable children from MANAGER, NODE's manager. Returns
        [(node, manager), ...]."""
        left = {}
        for child in self._list_first_children(node):
            if not self._pair[child]:
                left.setdefault(self._key[child], []).append(child)
        source, children = manager.get_source(), manager.get_child_managers()
        if len(children) != sum(map(len, left.values())):
            raise Unread
        found = []
        for place, child in enumerate(children):
            key = make_child_key(source, child.get_source(), lambda: manager.get_accessors()[place])
            same = left.get(key)
            if not same:
                raise Unread
            found.append((same.pop(0), child))
        return found

    def _read_pairs(self, manager, node):
        """Read the managers of the keys and values of a dict whose order matters. NODE is the
        dict's node, MANAGER its manager. Returns [(node, manager), ...]."""
        nodes = [child for child in self._list_first_children(node) if self._pair[child]]
        pairs = manager.get_key_value_managers() if nodes else {}
        managers = []
        for place in sorted(pairs):
            managers += [each for each in pairs[place] if each is not None]
        if len(nodes) != len(managers):
            raise Unread
        return list(zip(nodes, managers))

    def _read_children(self, managers, node):
        """Add the managers of NODE's children to the dict MANAGERS, which has NODE's own manager
        already. Returns True if the children have changed places."""
        found = self._read_movable_children(managers[node], node)
        managers.update(found)
        managers.update(self._read_pairs(managers[node], node))
        return self._store_order(node, [each for each, _ in found])

    def _read_all(self, root):
        """Read the whole order from torch's tree. Returns True if the order has changed."""
        changed, managers = False, {0: root}
        try:
            for node in range(len(self._parent)):
                if node in managers and self._end[node] > node + 1:
                    changed |= self._read_children(managers, node)
            if self._relations:
                self._counts = {node: each.fail_count() for node, each in managers.items()}
        except Unread:
            self._fails = None
        return changed
