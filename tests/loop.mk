# tests of optimizers, correctors and the training loop
