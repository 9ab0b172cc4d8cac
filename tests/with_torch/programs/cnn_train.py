"""A small ResNet's training loop: batch norm, optimizer, a step that is compiled with the loss in it, a smaller last batch."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from know import Know

know = Know(__file__)


class Residual(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.short = nn.Conv2d(channels_in, channels, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + self.short(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.layers = nn.Sequential(Residual(4, 4, 1), Residual(4, 8, 2))
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.layers(self.stem(x)).mean((2, 3)))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


@torch.compile(backend=know.backend("aot_eager"))
def loss_of(images, labels):
    return F.cross_entropy(net(images), labels)


images, labels = torch.randn(22, 3, 8, 8), torch.randint(5, (22,))
losses = []
for epoch in range(2):
    for at in range(0, 22, 8):
        batch = slice(at, min(at + 8, 22))      # 8, 8, 6
        if at == 0 and epoch == 0:
            wants = "compiled"
        elif at == 16 and epoch == 0:
            wants = "compiled"
            know.cause("loss_of", 1, 0, "L['images'].size()[0]", 8, 6, "TENSOR_MATCH")
        else:
            wants = "hit"
        optimizer.zero_grad()
        loss = know.call(f"loss_of: {wants}", loss_of, images[batch], labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss)

net.eval()
know.call("loss_of: compiled", loss_of, images[:8], labels[:8])
# The first batch norm is the first module that asks.
asks = "G['net']._modules['layers']._modules['0']._modules['bn1'].training"
know.cause("loss_of", 2, 0, asks, True, False)
know.cause("loss_of", 2, 1, asks, True, False)
know.frames = {"Net.forward": 0, "Residual.forward": 0, "loss_of": 7}
know.done(loss_of, losses=losses, checksum=torch.cat([p.flatten() for p in net.parameters()]),
          running=net.layers[1].bn2.running_mean)
