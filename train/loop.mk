# optimizers, correctors, training loop
