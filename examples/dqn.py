"""Deep Q-learning with a replay buffer and a target network, on a corridor whose reward lies at its far end."""

import argparse
import copy
import random
from collections import deque, namedtuple

import torch
from torch import nn

LENGTH = 6
Transition = namedtuple("Transition", "state action reward next_state done")


class Corridor:
    """Stand somewhere, go left (0) or right (1); the end on the right pays 1, the end on the left nothing."""

    def reset(self):
        self.at, self.time = LENGTH // 2, 0
        return self.observe()

    def observe(self):
        return torch.nn.functional.one_hot(torch.tensor(self.at), LENGTH).float()

    def step(self, action):
        self.at, self.time = self.at + (1 if action else -1), self.time + 1
        done = self.at in (0, LENGTH - 1) or self.time >= 20
        return self.observe(), float(self.at == LENGTH - 1), done


class ReplayBuffer:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *values):
        self.memory.append(Transition(*values))

    def sample(self, count):
        state, action, reward, next_state, done = zip(*random.sample(self.memory, count))
        return (torch.stack(state), torch.tensor(action), torch.tensor(reward), torch.stack(next_state),
                torch.tensor(done, dtype=torch.float32))  # fmt: skip


def optimize(q, target, optimizer, batch, gamma=0.9):
    state, action, reward, next_state, done = batch
    value = q(state).gather(1, action.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        expected = reward + gamma * (1 - done) * target(next_state).max(1).values
    loss = nn.SmoothL1Loss()(value, expected)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(q.parameters(), 10)
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=120)
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    env, buffer = Corridor(), ReplayBuffer(1000)
    q = nn.Sequential(nn.Linear(LENGTH, 32), nn.ReLU(), nn.Linear(32, 2))
    target = copy.deepcopy(q).requires_grad_(False)
    optimizer = torch.optim.AdamW(q.parameters(), lr=5e-3, amsgrad=True)
    loss = float("nan")
    for episode in range(args.episodes):
        state, done, epsilon = env.reset(), False, max(0.05, 1 - episode / 60)
        while not done:
            with torch.no_grad():
                action = random.randrange(2) if random.random() < epsilon else q(state).argmax().item()
            next_state, reward, done = env.step(action)
            buffer.push(state, action, reward, next_state, done)
            state = next_state
            if len(buffer.memory) >= 32:
                loss = optimize(q, target, optimizer, buffer.sample(32))
                for old, new in zip(target.parameters(), q.parameters()):
                    old.lerp_(new.detach(), 0.05)
    goes_right = q(torch.eye(LENGTH))[1:-1].argmax(1)
    print(f"loss {loss:.5f} policy from each place (1: right) {goes_right.tolist()}")


if __name__ == "__main__":
    main()
