"""An operating system in small: tasks pass packets, the kernel picks who runs.

After the idea of Martin Richards' benchmark: a producer sends packets to two
handlers, each of which feeds its device a letter at a time; a device holds
itself until the clock releases it. Many short methods, attributes, queues and
one polymorphic call (`step`).
"""

PACKET_LETTERS = 4
WORK, DEVICE = "work", "device"


class Packet:
    def __init__(self, kind, home):
        self.kind = kind
        self.home = home  # the task it goes back to
        self.next = None
        self.letter = 0
        self.letters = [0] * PACKET_LETTERS


class Queue:
    def __init__(self):
        self.first = None
        self.last = None

    def is_empty(self):
        return self.first is None

    def put(self, packet):
        packet.next = None
        if self.first is None:
            self.first = packet
        else:
            self.last.next = packet
        self.last = packet

    def take(self):
        packet = self.first
        if packet is not None:
            self.first = packet.next
        return packet


class Task:
    def __init__(self, kernel):
        self.kernel = kernel
        self.inbox = Queue()
        self.waiting = False
        self.held = False
        kernel.add(self)

    def is_ready(self):
        return not self.held and (not self.waiting or not self.inbox.is_empty())

    def wait(self):
        self.waiting = True

    def dispatch(self):
        packet = self.inbox.take()
        if packet is not None:
            self.waiting = False
        self.step(packet)

    def step(self, packet):
        raise NotImplementedError


class Clock(Task):
    """Runs when nobody else can; a shift register decides whom it wakes."""

    def __init__(self, kernel, ticks, devices):
        super().__init__(kernel)
        self.ticks = ticks
        self.devices = devices
        self.register = 1

    def step(self, packet):
        self.ticks -= 1
        if self.ticks == 0:
            self.kernel.hold(self)
            return
        bit = self.register & 1
        self.register >>= 1
        if bit:
            self.register ^= 0xD008
        self.kernel.release(self.devices[bit])


class Producer(Task):
    def __init__(self, kernel, handlers, packets):
        super().__init__(kernel)
        self.handlers = handlers
        self.turn = 0
        self.next_letter = 0
        for _ in range(packets):
            self.inbox.put(Packet(WORK, self))

    def step(self, packet):
        if packet is None:
            self.wait()
            return
        self.turn = 1 - self.turn
        packet.letter = 0
        for i in range(PACKET_LETTERS):
            packet.letters[i] = self.write_letter()
        self.kernel.send(packet, self.handlers[self.turn])

    def write_letter(self):
        self.next_letter = (self.next_letter + 1) % 26
        return ord("A") + self.next_letter


class Handler(Task):
    def __init__(self, kernel, device):
        super().__init__(kernel)
        self.device = device
        self.work = Queue()
        self.idle_packets = Queue()

    def step(self, packet):
        if packet is not None:
            (self.work if packet.kind is WORK else self.idle_packets).put(packet)
        if self.work.is_empty():
            self.wait()
            return
        current = self.work.first
        if current.letter == PACKET_LETTERS:
            self.work.take()
            self.kernel.send(current, current.home)
        elif self.idle_packets.is_empty():
            self.wait()
        else:
            carrier = self.idle_packets.take()
            carrier.letters[0] = current.letters[current.letter]
            current.letter += 1
            self.kernel.send(carrier, self.device)


class Device(Task):
    def __init__(self, kernel):
        super().__init__(kernel)
        self.pending = None
        self.printed = 0
        self.checksum = 0

    def step(self, packet):
        if packet is not None:
            self.pending = packet
            self.printed += 1
            self.checksum = (self.checksum * 31 + packet.letters[0]) % 65521
            self.kernel.hold(self)
        elif self.pending is None:
            self.wait()
        else:
            packet, self.pending = self.pending, None
            self.kernel.send(packet, packet.home)


class Kernel:
    def __init__(self):
        self.tasks = []  # most important first
        self.holds = 0
        self.sent = 0

    def add(self, task):
        self.tasks.insert(0, task)

    def send(self, packet, task):
        self.sent += 1
        task.inbox.put(packet)

    def hold(self, task):
        self.holds += 1
        task.held = True

    def release(self, task):
        task.held = False

    def find_ready(self):
        for task in self.tasks:
            if task.is_ready():
                return task
        return None

    def run(self):
        task = self.find_ready()
        while task is not None:
            task.dispatch()
            task = self.find_ready()


def simulate(ticks):
    kernel = Kernel()
    devices = []
    clock = Clock(kernel, ticks, devices)
    handlers = []
    producer = Producer(kernel, handlers, 4)
    for _ in range(2):
        device = Device(kernel)
        handler = Handler(kernel, device)
        for _ in range(3):
            handler.idle_packets.put(Packet(DEVICE, handler))
        devices.append(device)
        handlers.append(handler)
    kernel.run()
    return (clock.ticks, kernel.sent, kernel.holds, [device.printed for device in devices],
            [device.checksum for device in devices], producer.next_letter)


def run(times):
    for _ in range(times):
        result = simulate(500)
    return result


def check(result):
    return result == EXPECTED


# 489 letters printed and as many holds, and the clock's own end; the checksums
# say that they came in order.
EXPECTED = (0, 1218, 490, [239, 250], [29127, 25702], 6)
