# ====== 1 Trainer class with methods in hot loop via several functions; meters
# only PTM3 PTM4 PTM5
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
class AverageMeter:
    def update(self, val, n=1):
        self.sum += val * n
class Engine:
    def __init__(self, model, loaders):
        self.model, self.loaders = model, loaders
        self.criterion = nn.CrossEntropyLoss()
        self.history = {"loss": []}
    def fit(self, epochs):
        for epoch in range(epochs):
            self.run_epoch("train")
            with torch.no_grad():
                self.run_epoch("val")
    def run_epoch(self, phase):
        meter = AverageMeter()
        for inputs, labels in self.loaders[phase]:
            inputs = inputs.to(self.device)
            outputs = self.model(inputs)
            loss = self.criterion(outputs, labels)
            if phase == "train":
                loss.backward()
                self.optimizer.step()
            meter.update(loss.item(), inputs.size(0))  #~ PTM301
            self.record(loss)
            _, preds = torch.max(outputs, 1)
            self.correct += torch.sum(preds == labels.data).item()  #~ PTM301
            self.correct2 += torch.sum(preds == labels.data)
        return meter
    def record(self, loss):
        self.history["loss"].append(loss.item())  #~ PTM301
# ====== 2 accumulation
# only PTM3
# nothing to find
import torch
for i, batch in enumerate(train_loader):
    loss = model(batch) / accum
    loss.backward()
    if (i + 1) % accum == 0:
        optimizer.step()
        optimizer.zero_grad()
        log(loss.item())
    if i % 50 == 49:
        print(loss.item())
    if i == len(train_loader) - 1:
        print(loss.item())
    log_loss = loss.item() if i % 10 == 0 else None
    i % 10 == 0 and print(loss.item())
    should_log = i % 10 == 0
    if should_log:
        print(loss.item())
    if not should_log: continue
    print(loss.item())
# ====== 3 RL: action.item() for env step
# only PTM3
# nothing to find
import torch
import gym
env = gym.make("CartPole-v1")
for ep in range(100):
    state = env.reset()
    for t in range(1000):
        action = select(state)
        state, reward, done, _ = env.step(action.item())
        rewards.append(reward)
    finish_episode()
# ====== 4 gan
# only PTM3
import torch
for epoch in range(n_epochs):
    for i, (imgs, _) in enumerate(dataloader):
        optimizer_G.zero_grad()
        gen = generator(z)
        g_loss = adversarial_loss(discriminator(gen), valid)
        g_loss.backward()
        optimizer_G.step()
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()
        optimizer_D.step()
        print("[D loss: %f] [G loss: %f]" % (d_loss.item(), g_loss.item()))  #~ PTM301
        batches_done = epoch * len(dataloader) + i
        if batches_done % opt.sample_interval == 0:
            save_image(gen.data[:25], "x.png")
            print(d_loss.item())
# ====== 5 val inside function w/o no_grad decorator, model.eval
# only PTM3
import torch
def validate(val_loader, model, criterion):
    model.eval()
    with torch.no_grad():
        end = time.time()
        for i, (images, target) in enumerate(val_loader):
            output = model(images)
            loss = criterion(output, target)
            acc1, acc5 = accuracy(output, target, topk=(1, 5))
            losses.update(loss.item(), images.size(0))  #~ PTM301
            top1.update(acc1[0], images.size(0))
            if i % args.print_freq == 0:
                progress.display(i)
def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / batch_size).item())  #~ PTM301
        return res
# ====== 6 language model
# only PTM3
import torch
def train():
    total_loss = 0.
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        data, targets = get_batch(train_data, i)
        model.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output.view(-1, ntokens), targets)
        loss.backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total_loss += loss.item()  #~ PTM301
        if batch % args.log_interval == 0 and batch > 0:
            cur_loss = total_loss / args.log_interval
            print(cur_loss, loss.item())
        if args.dry_run:
            break
# ====== 7 lightning manual optimization, predict
# only PTM3
import torch
import pytorch_lightning as pl
class GAN(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        g_opt, d_opt = self.optimizers()
        loss = self.loss(batch)
        self.manual_backward(loss)
        g_opt.step()
        if loss.isnan():  #~ PTM307
            return None
        if torch.isnan(loss):  #~ PTM307
            return None
        self.log_dict({"g": loss})
    def predict_step(self, batch, batch_idx):
        return self(batch).argmax(1).cpu()
    def forward(self, x):
        return self.net(x)
    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.total += outputs["loss"].item()  #~ PTM301
    def on_validation_epoch_end(self):
        print(self.metric.compute().item())
# ====== 8 diffusers/accelerate
# only PTM3
import torch
from accelerate import Accelerator
progress_bar = tqdm(range(max_steps))
for epoch in range(first, n):
    for step, batch in enumerate(train_dataloader):
        with accelerator.accumulate(unet):
            pred = unet(noisy, t).sample
            loss = F.mse_loss(pred.float(), target.float(), reduction="mean")
            avg_loss = accelerator.gather(loss.repeat(bs)).mean()
            train_loss += avg_loss.item() / accum  #~ PTM301
            accelerator.backward(loss)
            optimizer.step()
        logs = {"step_loss": loss.detach().item()}  #~ PTM301
        progress_bar.set_postfix(**logs)
        if accelerator.sync_gradients:
            accelerator.log({"train_loss": train_loss}, step=global_step)
# ====== 9 sync with stream/timing benchmark
# only PTM3
import torch
start.record()
for x, y in loader:
    model(x)
    torch.cuda.synchronize(device)  #~ PTM310
    optimizer.step()
