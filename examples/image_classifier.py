"""A convolutional classifier of drawn shapes, with a data loader, a schedule of the learning rate and a checkpoint."""

import argparse
import os
import tempfile

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset, random_split

SIZE, CLASSES = 16, ("square", "cross", "stripe")


class Shapes(Dataset):
    def __init__(self, count):
        self.labels = torch.randint(len(CLASSES), (count,))
        self.images = 0.3 * torch.randn(count, 1, SIZE, SIZE)
        for image, label, (top, left) in zip(self.images, self.labels, torch.randint(0, SIZE - 8, (count, 2)).tolist()):
            patch = image[0, top : top + 8, left : left + 8]
            if label == 0:
                patch += 1
            elif label == 1:
                patch[3:5] += 1
                patch[:, 3:5] += 1
            else:
                patch[::2] += 1

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.drop, self.fc = nn.Dropout(0.1), nn.Linear(16 * 4 * 4, len(CLASSES))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(self.drop(torch.flatten(x, 1)))


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--count", type=int, default=900)
    parser.add_argument("--checkpoint", default=os.path.join(tempfile.gettempdir(), "shapes.pt"))
    args = parser.parse_args()
    torch.manual_seed(0)
    train_set, test_set = random_split(Shapes(args.count), [0.8, 0.2])
    train, test = DataLoader(train_set, batch_size=32, shuffle=True), DataLoader(test_set, batch_size=64)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    for epoch in range(args.epochs):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
        rate = scheduler.get_last_lr()[0]
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {evaluate(model, test):.3f} next lr {rate:.4f}")
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.checkpoint)
    restored = Net()
    restored.load_state_dict(torch.load(args.checkpoint, weights_only=True)["model"])
    assert evaluate(restored, test) == evaluate(model, test)
    print(f"final accuracy {evaluate(restored, test):.3f}, from the checkpoint {args.checkpoint}")


if __name__ == "__main__":
    main()
