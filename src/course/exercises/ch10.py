"""The exercises of chapter 10: training a GPT."""

import math

import numpy as np

from src.core import Dataset, Optimizer, SGDOptimizer, Tensor, Trainer, WarmupCosineScheduler
from src.course.compare import compare, show, to_array
from src.course.exercise import Exercise, Hint, NotAttempted, Property, Wrong, WrongAnswer
from src.gpt import GPT, GPTLoss

# AdamW by hand: weight 2, lr 0.1, decay 0.5, gradients 4 and 0

RATIO = (0.09 * 4 / (1 - 0.81)) / math.sqrt(0.000999 * 16 / (1 - 0.998001))
STEPS = [2 * 0.95 - 0.1, 1.8 * 0.95 - 0.1 * RATIO]


def _numbers(answer, count, name):
    numbers = to_array(answer, name)
    if numbers.shape != (count,):
        raise Wrong(f"{name} must be {count} numbers, yours has the shape {numbers.shape}")
    return numbers


def first_step(answer):
    known = {
        "the first step has no decay, or one that was added to the gradient and divided away": 1.9,
        "the first step decays after the Adam step: it comes before": 1.9 * 0.95,
        "the first step lacks the correction of the two averages, which start at 0": 1.9 - 0.1 * 0.4 / math.sqrt(0.016),
        "the first step is as long as the gradient is large: divide by its size": 1.9 - 0.4,
        "the first step decays by 0.5 alone: the decay is multiplied by the learning rate": 2 * 0.5 - 0.1,
        "the first step goes with the gradient: it must go against it": 2.0,
    }
    return compare(_numbers(answer, 2, "your answer")[0], STEPS[0], name="the weight after the first step", known=known)


def second_step(answer):
    known = {
        "the second step only decays: the average of the gradients remembers the first one": 1.8 * 0.95,
        "the second step is a full 0.1 long: the average of the gradients has shrunk": 1.8 * 0.95 - 0.1,
        "the second step is corrected as if it were the first: the powers of the betas grow": 1.8 * 0.95
        - 0.1 * 3.6 / math.sqrt(15.984),
        "the second step lacks the correction of m alone": 1.8 * 0.95 - 0.1 * 0.36 / math.sqrt(0.015984 / 0.001999),
        "the second step takes plain means of the gradients and squares: newer ones weigh more": 1.8 * 0.95
        - 0.1 * 2 / math.sqrt(8),
        "the second step lacks the correction of the averages": 1.8 * 0.95 - 0.1 * 0.36 / math.sqrt(0.015984),
        "the second step does not decay": 1.8 - 0.1 * RATIO,
    }
    second = _numbers(answer, 2, "your answer")[1]
    return compare(second, STEPS[1], name="the weight after the second step", known=known)


adamw = Exercise(
    id="ch10.adamw",
    title="Two steps by hand",
    kind="by hand",
    stub=(
        "after_first = ...  # three decimals are enough\nafter_second = ...\n\n"
        'check("ch10.adamw", [after_first, after_second])'
    ),
    properties=[
        Property("the weight after the first step", first_step, points=2),
        Property("the weight after the second step", second_step, points=2),
    ],
    hints=[
        Hint("Each step has two parts: multiply by 1 - lr * decay, then subtract lr times a ratio of two averages."),
        Hint(
            "In the first step the ratio is 1 or -1, the sign of the gradient. In the second, with a gradient of 0, "
            "the averages are `m = 0.9 * 0.4` and `v = 0.999 * 0.016`, to be divided by `1 - 0.9**2` and "
            "`1 - 0.999**2`."
        ),
        Hint(
            "Both weights:",
            code=("[2 * 0.95 - 0.1, 1.8 * 0.95 - 0.1 * (0.36 / (1 - 0.9**2)) / (0.015984 / (1 - 0.999**2)) ** 0.5]"),
            answer=STEPS,
        ),
    ],
    wrong=[
        WrongAnswer([1.9, 1.643], contains="has no decay"),
        WrongAnswer([1.805, 1.643], contains="decays after the Adam step"),
        WrongAnswer([1.584, 1.643], contains="lacks the correction of the two averages"),
        WrongAnswer([1.5, 1.643], contains="as long as the gradient is large"),
        WrongAnswer([0.9, 1.643], contains="decays by 0.5 alone"),
        WrongAnswer([1.8, 1.71], contains="only decays"),
        WrongAnswer([1.8, 1.61], contains="a full 0.1 long"),
        WrongAnswer([1.8, 1.62], contains="as if it were the first"),
        WrongAnswer([1.8, 1.697], contains="of m alone"),
        WrongAnswer([1.8, 1.639], contains="plain means"),
        WrongAnswer([1.8, 1.64], contains="rounded too early: keep at least 3 decimals"),
        WrongAnswer([1.8, 1.4253], contains="correction of the averages"),
        WrongAnswer([1.8, 1.677], contains="the weight after the second step: yours is 1.677"),
        WrongAnswer([1.8, 1.733], contains="does not decay"),
    ],
    explanation="Without a gradient AdamW still moves: by momentum, and by decay.",
)

# A schedule by hand: lr 0.004, min_lr 0.0004, 8 of 32 steps warm up; steps 0, 3, 24, 40

LR, LEAST = 0.004, 0.0004
RATES = [0.0005, 0.002, 0.0013, 0.0004]


def _rates(answer, places):
    return _numbers(answer, 4, "your list")[places]


def warmup_is_right(answer):
    known = {
        "the warm-up starts at 0: the first step would be wasted": [0.0, 0.0015],
        "the warm-up starts at min_lr: that is where the cosine ends": [LEAST, LEAST + (LR - LEAST) * 3 / 8],
        "the steps of the warm-up are counted from 1: step 0 is the first": [0.0005, 0.0015],
    }
    return compare(_rates(answer, slice(0, 2)), RATES[:2], 1e-6, "the pair of rates in the warm-up", known)


def cosine_is_right(answer):

    def at(angle):
        return LEAST + 0.5 * (LR - LEAST) * (1 + math.cos(angle))

    known = {
        "at step 24 you divide by N: the fall is N - W steps long": at(math.pi * 16 / 32),
        "you took the cosine of 120 radians: your calculator or math.cos counts in radians, 120 degrees are 2.094": at(
            120
        ),
        "the rate of step 24 falls in a straight line, not along a cosine": LEAST + (LR - LEAST) / 3,
        "the rate of step 24 falls to 0 instead of min_lr": 0.5 * LR * (1 + math.cos(math.pi * 2 / 3)),
        "at step 24 you counted the cosine from step 0: it begins where the warm-up ends": at(math.pi * 24 / 32),
        "at step 24 you have the height above min_lr: min_lr is missing": 0.0009,
        "the cosine of 120 degrees is -1/2, you took 1/2: step 24 is past the middle of the fall": 0.0031,
    }
    rate = _rates(answer, 2)
    problem = compare(rate, RATES[2], 1e-6, "the rate of step 24", known)
    slips = (message for message, wrong in known.items() if abs(rate - wrong) < 6e-6)  # rounded to five decimals
    return problem and next(slips, problem)


def end_is_right(answer):
    known = {
        "after the end the cosine rises again: hold the rate at its end": 0.0013,
        "after the end the rate is 0: it stays at min_lr": 0.0,
    }
    return compare(_rates(answer, 3), RATES[3], 1e-6, "the rate of step 40", known)


schedule = Exercise(
    id="ch10.schedule",
    title="A schedule by hand",
    kind="by hand",
    stub='four_rates = [..., ..., ..., ...]  # of the steps 0, 3, 24 and 40\n\ncheck("ch10.schedule", four_rates)',
    properties=[
        Property("the warm-up", warmup_is_right, points=2),
        Property("the cosine", cosine_is_right, points=2),
        Property("after the end", end_is_right),
    ],
    hints=[
        Hint("In the warm-up, step n has (n + 1) / 8 of the full rate."),
        Hint("Step 24 is 16 of 24 steps into the cosine: a part of 2/3. The cosine of 2/3 of 180 degrees is -1/2."),
        Hint(
            "The four rates:",
            code="[0.004 / 8, 0.004 * 4 / 8, 0.0004 + 0.5 * 0.0036 * (1 - 0.5), 0.0004]",
            answer=RATES,
        ),
    ],
    wrong=[
        WrongAnswer([0, 0.0015, 0.0013, 0.0004], contains="starts at 0"),
        WrongAnswer([0.0004, 0.00175, 0.0013, 0.0004], contains="starts at min_lr"),
        WrongAnswer([0.0005, 0.0015, 0.0013, 0.0004], contains="counted from 1"),
        WrongAnswer([0.0005, 0.002, 0.0016, 0.0004], contains="straight line"),
        WrongAnswer([0.0005, 0.002, 0.001, 0.0004], contains="instead of min_lr"),
        WrongAnswer([0.0005, 0.002, 0.00093, 0.0004], contains="counted the cosine from step 0"),
        WrongAnswer([0.0005, 0.002, 0.0022, 0.0004], contains="you divide by N"),
        WrongAnswer([0.0005, 0.002, 0.00367, 0.0004], contains="of 120 radians"),
        WrongAnswer([0.0005, 0.002, 0.0009, 0.0004], contains="height above min_lr"),
        WrongAnswer([0.0005, 0.002, 0.0031, 0.0004], contains="you took 1/2"),
        WrongAnswer([0.0005, 0.002, 0.0013, 0.0013], contains="rises again"),
    ],
    explanation="A run that goes on after the end of its schedule goes on at min_lr.",
)

# An optimizer of one's own: momentum


def _given_optimizer(answer, parameters, lr=0.1, beta=0.5):
    if not (isinstance(answer, type) and issubclass(answer, Optimizer)):
        raise Wrong("pass the class itself, a subclass of Optimizer, as in check(..., Momentum)")
    return answer(parameters, lr, beta)  # type: ignore[call-arg]


def _step(optimizer, *gradients):
    """One step with the given gradients, one for each parameter."""
    optimizer.zero_grad()
    for parameter, gradient in zip(optimizer.parameters, gradients, strict=True):
        parameter.grad += np.full(parameter.shape, gradient)
    optimizer.step()


def one_number(answer):
    weight = Tensor([1.0])
    optimizer, places = _given_optimizer(answer, [weight]), []
    for gradient in (1.0, 1.0, 0.0):
        _step(optimizer, gradient)
        places.append(weight.item())
    if places == [1.0, 1.0, 1.0]:
        if not answer.update.__code__.co_names:  # a body of three dots uses nothing
            raise NotAttempted("`update` changes no parameter yet: write its body.")
        return "`update` changes no parameter: is parameter.data assigned?"
    known = {
        "each step forgets the earlier ones, as SGD does": [0.9, 0.8, 0.8],
        "the gradient enters with 1 - beta, so all steps are too short": [0.95, 0.875, 0.8375],
        "the weight grows: go against the velocity": [1.1, 1.25, 1.325],
        "you step before the velocity is renewed": [1.0, 0.9, 0.75],
        "you add beta times the new velocity to the gradient, which is another method": [0.85, 0.675, 0.6375],
        "the velocity never fades: multiply it by beta": [0.9, 0.7, 0.5],
        "you take 0.9 whatever beta is: it is self.beta": [0.9, 0.71, 0.539],
    }
    problem = compare(places, [0.9, 0.75, 0.675], 1e-4, "the weight after each step", known)
    return problem and f"weight 1, lr 0.1, beta 0.5, gradients 1, 1 and 0: {problem}"


def parameters_keep_apart(answer):
    one, other = Tensor([1.0]), Tensor(np.ones((2, 2)))
    optimizer = _given_optimizer(answer, [one, other])
    _step(optimizer, 1.0, 0.0)
    _step(optimizer, 0.0, 0.0)
    if not np.allclose(other.data, 1.0):
        return f"the second of two parameters never had a gradient, and moved to {show(other.data.flat[0])}"
    return compare(one.item(), 0.85, 1e-4, "the first of two parameters")


def rate_may_change(answer):
    weight = Tensor([1.0])
    optimizer = _given_optimizer(answer, [weight])
    _step(optimizer, 1.0)
    optimizer.lr = 0.0
    _step(optimizer, 0.0)
    return (
        None
        if math.isclose(weight.item(), 0.9, abs_tol=1e-5)
        else f"the rate was set to 0, and the weight still moved, from 0.9 to {show(weight.item())}: "
        "multiply by self.lr in each step, outside of the velocity"
    )


def _loss_after(kind, *settings):
    generator = np.random.Generator(np.random.PCG64(10))
    model = GPT(vocab_size=5, context_size=6, embedding_size=8, blocks=1, generator=generator)
    trainer = Trainer(model, GPTLoss(), kind(model.parameters, 0.05, *settings))
    ids = Tensor(np.arange(12).reshape(2, 6) % 5)
    return [trainer.train_step(ids, ids, WarmupCosineScheduler(0.05, 30, 3)) for _ in range(30)][-1]


def it_trains_a_gpt(answer):
    _given_optimizer(answer, [Tensor([1.0])])
    problem = compare(_loss_after(answer, 0.9), _loss_after(Momentum, 0.9), 1e-3, "the loss of a GPT after 30 steps")
    return problem and f"{problem}; the optimizer gets arrays of all shapes and a rate that changes"


class Momentum(Optimizer):
    def __init__(self, parameters, lr, beta=0.9):
        super().__init__(parameters, lr)
        self.beta = beta
        self.velocities = [0.0 * each.data for each in self.parameters]

    def update(self, index, parameter):
        velocity = self.beta * self.velocities[index] + parameter.grad
        self.velocities[index] = velocity
        parameter.data -= self.lr * velocity


class Forgets(Momentum):
    def update(self, index, parameter):
        parameter.data -= self.lr * parameter.grad


class Averages(Momentum):
    def update(self, index, parameter):
        self.velocities[index] = self.beta * self.velocities[index] + (1 - self.beta) * parameter.grad
        parameter.data -= self.lr * self.velocities[index]


class Climbs(Momentum):
    def update(self, index, parameter):
        self.velocities[index] = self.beta * self.velocities[index] + parameter.grad
        parameter.data += self.lr * self.velocities[index]


class TooEarly(Momentum):
    def update(self, index, parameter):
        parameter.data -= self.lr * self.velocities[index]
        self.velocities[index] = self.beta * self.velocities[index] + parameter.grad


class Returns(Momentum):
    def update(self, index, parameter):
        self.velocities[index] = self.beta * self.velocities[index] + parameter.grad
        return parameter.data - self.lr * self.velocities[index]


class AlwaysNine(Momentum):
    def update(self, index, parameter):
        self.velocities[index] = 0.9 * self.velocities[index] + parameter.grad
        parameter.data -= self.lr * self.velocities[index]


class LessThanTheRate(Momentum):
    def update(self, index, parameter):
        self.velocities[index] = self.beta * self.velocities[index] + parameter.grad
        parameter.data -= 0.7 * self.lr * self.velocities[index]


class NeverFades(Momentum):
    def update(self, index, parameter):
        self.velocities[index] = self.velocities[index] + parameter.grad
        parameter.data -= self.lr * self.velocities[index]


class LooksAhead(Momentum):
    def update(self, index, parameter):
        self.velocities[index] = self.beta * self.velocities[index] + parameter.grad
        parameter.data -= self.lr * (parameter.grad + self.beta * self.velocities[index])


class OneVelocity(Momentum):
    def update(self, index, parameter):
        self.velocities[0] = self.beta * self.velocities[0] + parameter.grad.mean()
        parameter.data -= self.lr * self.velocities[0]


class RateInside(Momentum):
    def update(self, index, parameter):
        self.velocities[index] = self.beta * self.velocities[index] + self.lr * parameter.grad
        parameter.data -= self.velocities[index]


momentum = Exercise(
    id="ch10.momentum",
    title="An optimizer of your own",
    kind="build",
    stub=(
        "class Momentum(Optimizer):\n"
        "    def __init__(self, parameters, lr, beta=0.9):\n"
        "        super().__init__(parameters, lr)\n"
        "        self.beta = beta\n"
        "        self.velocities = [0.0 * each.data for each in self.parameters]\n"
        "\n"
        "    def update(self, index, parameter):\n"
        "        # renew self.velocities[index], change parameter.data\n"
        "        ...\n"
        "\n\n"
        'check("ch10.momentum", Momentum)'
    ),
    properties=[
        Property("three steps of one number", one_number, points=2),
        Property("each parameter has its own velocity", parameters_keep_apart),
        Property("a learning rate that changes", rate_may_change),
        Property("it trains a GPT", it_trains_a_gpt),
    ],
    hints=[
        Hint("`parameter.grad` is the gradient, an array; `self.velocities[index]` the velocity of this parameter."),
        Hint("First the new velocity, beta times the old one plus the gradient; store it. Then step with the new one."),
        Hint(
            "After storing the new `velocity`, the last line is",
            code="parameter.data -= self.lr * velocity",
            answer=Momentum,
        ),
    ],
    wrong=[
        WrongAnswer(Forgets, contains="forgets the earlier ones"),
        WrongAnswer(Averages, contains="with 1 - beta"),
        WrongAnswer(Climbs, contains="against the velocity"),
        WrongAnswer(TooEarly, contains="before the velocity is renewed"),
        WrongAnswer(Returns, contains="is parameter.data assigned"),
        WrongAnswer(AlwaysNine, contains="it is self.beta"),
        WrongAnswer(
            LessThanTheRate, contains="lr 0.1, beta 0.5, gradients 1, 1 and 0: the weight after each step: yours is"
        ),
        WrongAnswer(NeverFades, contains="never fades"),
        WrongAnswer(OneVelocity, contains="never had a gradient"),
        WrongAnswer(RateInside, contains="outside of the velocity"),
        WrongAnswer(LooksAhead, contains="another method"),
    ],
    explanation="With a steady gradient the velocity grows to 1 / (1 - beta) gradients: 10 for beta = 0.9.",
)

# Find the bug


class _Windows(Dataset):
    def load(self):
        x = np.arange(42).reshape(7, 6) * 5 % 11
        self.train_data, self.test_data = (x, x * 2 % 11), (x, (x + 3) % 11)


def _tested(batch_size):
    """A model that drops half of its numbers, the loss, and seven windows in batches of this size."""
    generator = np.random.Generator(np.random.PCG64(3))
    model = GPT(11, context_size=6, embedding_size=8, blocks=1, dropout=0.5, std=0.5, generator=generator)
    return model, GPTLoss(), _Windows(batch_size, drop_last=False, generator=generator)


def _training_loss():
    model, loss_fn, dataset = _tested(7)
    x, y = dataset.train_data
    return loss_fn(model.eval()(Tensor(x)), Tensor(y)).item()


def _whole_loss():
    model, loss_fn, dataset = _tested(7)
    return Trainer(model, loss_fn, SGDOptimizer(model.parameters, 0.1)).evaluate(dataset)


def _loss(answer, given):
    return float(to_array(answer(*given), "what your function returns"))


def calls_agree(answer):
    if not callable(answer):
        raise Wrong("pass the function itself, as in check(..., evaluate)")
    given = _tested(7)
    losses = [_loss(answer, given) for _ in range(2)]
    if losses[0] != losses[1]:
        return f"two calls with one model give {show(losses[0])} and {show(losses[1])}: is dropout off?"
    return None


def batch_sizes_agree(answer):
    for size in (7, 2, 3):
        found, right = _loss(answer, _tested(size)), _whole_loss()
        if not math.isclose(found, right, rel_tol=1e-4):
            model, loss_fn, dataset = _tested(size)
            model.eval()
            dataset.eval()
            parts = [loss_fn(model(x), y).item() for x, y in (dataset[i] for i in range(len(dataset)))]
            where = (
                f"for batches of {size}, the last of them with {7 % size or size} of 7 windows, you get {show(found)}"
            )
            if math.isclose(found, _training_loss(), rel_tol=1e-4):
                return "this is the loss on the training part: dataset.eval() switches to the test part"
            if math.isclose(found, np.mean(parts), rel_tol=1e-4):
                return f"{where}: a short batch weighs as much as a full one"
            if math.isclose(found, np.mean(parts[:-1]), rel_tol=1e-4):
                return f"{where}: the last batch was left out"
            return f"{where}, another mean over the same targets than with other sizes"
    return None


def mode_comes_back(answer):
    for training in (True, False):
        given = _tested(7)
        model = given[0]
        model.train() if training else model.eval()
        answer(*given)
        modes = {layer.training for layer in model.layers_within()}
        if modes != {training}:
            before, after = ("training", "evaluation") if training else ("evaluation", "training")
            return f"the model came in {before} mode and was left in {after} mode"
    return None


def evaluate(model, loss_fn, dataset):
    was_training = model.training
    model.eval()
    dataset.eval()
    total, count = 0.0, 0
    for index in range(len(dataset)):
        x, y = dataset[index]
        total += loss_fn(model(x), y).item() * y.data.size
        count += y.data.size
    if was_training:
        model.train()
    return total / count


def _over_all_targets(model, loss_fn, dataset):
    total, count = 0.0, 0
    for index in range(len(dataset)):
        x, y = dataset[index]
        total += loss_fn(model(x), y).item() * y.data.size
        count += y.data.size
    return total / count


def still_drops(model, loss_fn, dataset):
    dataset.eval()
    return _over_all_targets(model, loss_fn, dataset)


def mean_of_means(model, loss_fn, dataset):
    was_training = model.training
    model.eval()
    dataset.eval()
    losses = [loss_fn(model(x), y).item() for x, y in (dataset[index] for index in range(len(dataset)))]
    if was_training:
        model.train()
    return float(np.mean(losses))


def on_the_training_part(model, loss_fn, dataset):
    was_training = model.training
    model.eval()
    mean = _over_all_targets(model, loss_fn, dataset)
    if was_training:
        model.train()
    return mean


def without_the_last(model, loss_fn, dataset):
    model.eval()
    dataset.eval()
    full = range(max(len(dataset) - 1, 1))
    return float(np.mean([loss_fn(model(x), y).item() for x, y in (dataset[index] for index in full)]))


def stays_in_evaluation(model, loss_fn, dataset):
    loss = evaluate(model, loss_fn, dataset)
    model.eval()
    return loss


def always_trains_on(model, loss_fn, dataset):
    loss = evaluate(model, loss_fn, dataset)
    model.train()
    return loss


bug = Exercise(
    id="ch10.bug",
    title="A test loss that depends on the batch size",
    kind="find the bug",
    stub='evaluate = ...  # your function, mended from broken_evaluate\n\ncheck("ch10.bug", evaluate)',
    properties=[
        Property("two calls agree", calls_agree),
        Property("all batch sizes agree", batch_sizes_agree, points=2),
        Property("the mode comes back", mode_comes_back),
    ],
    hints=[
        Hint("Three things: the model's mode during the loop, the mean at the end, and the mode afterwards."),
        Hint(
            "`model.eval()` switches dropout off; whether it was on, `model.training` says. Sum loss times number of "
            "targets, and divide by the number of all targets."
        ),
        Hint(
            "In the loop, with total and count starting at 0, and count growing by y.data.size:",
            code="total += loss_fn(model(x), y).item() * y.data.size",
            answer=evaluate,
        ),
    ],
    wrong=[
        WrongAnswer(still_drops, contains="is dropout off"),
        WrongAnswer(mean_of_means, contains="weighs as much"),
        WrongAnswer(on_the_training_part, contains="loss on the training part"),
        WrongAnswer(without_the_last, contains="was left out"),
        WrongAnswer(stays_in_evaluation, contains="came in training mode"),
        WrongAnswer(always_trains_on, contains="came in evaluation mode"),
    ],
    explanation="`Trainer.evaluate` does the same, and puts every mode back even after an error.",
)

EXERCISES = [adamw, schedule, momentum, bug]
