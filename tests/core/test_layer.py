"""Layers: which tensors are parameters, modes, state in and out, and the list of a Composite."""

import copy

import numpy as np
import pytest

from src.core import Composite, Dropout, Layer, Linear, ReLU, Tensor, default_generator
from src.core.fast import plain


class Bag(Layer):
    """A layer with whatever attributes it is given."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


def names(layer):
    return [name for name, _ in layer.named_parameters()]


def test_parameters_are_found_in_every_kind_of_attribute():
    bag = Bag(
        own=Tensor(1.0),
        layer=Linear(2, 2),
        listed=[Linear(2, 2, bias=False), (Tensor([1.0]), "text")],
        keyed={"a": Linear(2, 2, bias=False), 3: [Tensor([2.0])]},
        nested=Bag(deep=[[Bag(weight=Tensor(3.0))]]),
    )
    assert names(bag) == [
        "own",
        "layer.weight",
        "layer.bias",
        "listed.0.weight",
        "listed.1.0",
        "keyed.a.weight",
        "keyed.3.0",
        "nested.deep.0.0.weight",
    ]
    assert [tensor.name for tensor in bag.parameters] == names(bag)


def test_what_is_no_parameter():
    with Tensor.no_grad():
        computed = Tensor([1.0]) * 2
    bag = Bag(ids=Tensor([1, 2]), mask=Tensor([True]), table=np.ones(3), computed=computed, result=Tensor([1.0]) * 2)
    assert bag.parameters == []


def test_a_shared_tensor_is_one_parameter_under_its_first_name():
    tensor, layer = Tensor([1.0]), Linear(2, 2)
    bag = Bag(first=tensor, again=tensor, layer=layer, others=[layer, Bag(tied=layer.weight)])
    assert names(bag) == ["first", "layer.weight", "layer.bias"]


def test_a_cycle_ends():
    child = Bag(weight=Tensor([1.0]))
    parent = Bag(child=child)
    child.parent = parent
    loop = [child]
    loop.append(loop)
    child.loop = loop
    assert names(parent) == ["child.weight"]
    assert list(parent.layers_within()) == [parent, child]
    parent.eval()
    assert not child.training


def test_modes_reach_every_layer_and_return_the_layer():
    drops = [Dropout(0.5) for _ in range(3)]
    model = Bag(one=drops[0], many=[Composite([drops[1]])], keyed={"x": drops[2]})
    assert all(drop.training for drop in drops)
    assert model.eval() is model and not any(drop.training for drop in drops)
    assert model.train() is model and all(drop.training for drop in drops)
    assert Layer.training


def test_calling_a_layer_calls_forward():
    class Add(Layer):
        def forward(self, x, amount=1.0):
            return x + amount

    assert Add()(Tensor([1.0]), amount=2.0).item() == 3.0


def test_forward_and_shapes_of_a_composite():
    model = Composite([Linear(3, 4), ReLU(), Linear(4, 2)])
    x = Tensor(np.ones((5, 3)))
    expected = model.layers[2](model.layers[1](model.layers[0](x)))
    np.testing.assert_array_equal(model(x).data, expected.data)
    assert names(model) == ["layers.0.weight", "layers.0.bias", "layers.2.weight", "layers.2.bias"]
    assert repr(model) == "Composite(26 parameters)"
    assert Composite([])(x) is x


class Listed(Composite):
    def __init__(self, listed):
        self.first = Linear(2, 2)
        self.many = [Linear(2, 2), Linear(2, 2)]
        self.inner = Composite([Linear(2, 2)])
        super().__init__(listed(self))


def test_a_composite_that_lists_all_its_layers():
    model = Listed(lambda self: [self.first, *self.many, self.inner])
    assert len(model.parameters) == 8
    assert names(model)[:2] == ["first.weight", "first.bias"]


@pytest.mark.parametrize(
    "listed, missing",
    [
        (lambda self: [self.first, *self.many], "inner"),
        (lambda self: [self.first, self.many[0], self.inner], r"many\.1"),
        (lambda self: [], r"first, many\.0, many\.1, inner"),
    ],
)
def test_a_composite_refuses_a_list_that_forgets_a_layer(listed, missing):
    with pytest.raises(ValueError, match=f"Listed has layers that are not in its list: add {missing}"):
        Listed(listed)


def test_state_dict_is_a_copy_with_each_tensor_once():
    layer = Linear(2, 3)
    bag = Bag(layer=layer, tied=layer.weight)
    state = bag.state_dict()
    assert list(state) == ["layer.weight", "layer.bias"]
    state["layer.weight"] += 1
    assert not np.array_equal(state["layer.weight"], layer.weight.data)


def test_loading_copies_into_the_existing_arrays_so_ties_hold():
    source, target = Linear(2, 3), Linear(2, 3)
    model = Bag(layer=target, tied=target.weight)
    array = target.weight.data
    model.load_state_dict({f"layer.{name}": values for name, values in source.state_dict().items()})
    assert target.weight.data is array and model.tied is target.weight
    np.testing.assert_array_equal(target.weight.data, source.weight.data)
    source.weight.data += 1
    assert not np.array_equal(target.weight.data, source.weight.data)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda s: s.pop("bias"), r"missing \['bias'\], unknown none"),
        (lambda s: s.update(extra=np.ones(1)), r"missing none, unknown \['extra'\]"),
        (
            lambda s: s.update(bias=np.ones(4)),
            r"bias: the model has floats of shape \(3,\), the file float64 of \(4,\)",
        ),
        (lambda s: s.update(bias=np.ones(3, int)), "bias: the model has floats"),
        (lambda s: s.update(bias=np.array(["a", "b", "c"])), "bias: the model has floats"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change, message):
    layer = Linear(2, 3)
    before = layer.state_dict()
    state = {name: values + 1 for name, values in before.items()}
    change(state)
    with pytest.raises(ValueError, match=message):
        layer.load_state_dict(state)
    for name, values in layer.state_dict().items():
        np.testing.assert_array_equal(values, before[name])


def test_loading_counts_as_a_change_for_a_graph_that_waits():
    layer = Linear(2, 3)
    y = layer(Tensor([[1.0, 2.0]])).sum()
    layer.load_state_dict(layer.state_dict())
    with pytest.raises(RuntimeError, match="changed after the forward pass"):
        y.backward()


class Ahead(Composite):
    """A forward of its own, by the attributes."""

    def __init__(self):
        self.first, self.second = Linear(2, 2), Linear(2, 1)
        super().__init__([self.first, self.second])

    def forward(self, x):
        return self.second(self.first(x))


class InTurn(Composite):
    """The forward of Composite, by the list."""

    def __init__(self):
        self.first, self.second = Linear(2, 2), Linear(2, 1)
        super().__init__([self.first, self.second])


@pytest.mark.parametrize("kind", [Ahead, InTurn])
def test_a_replaced_part_is_the_only_one_of_its_name(kind):
    model, x = kind(), Tensor(np.ones((1, 2)))
    old, model.second = model.second, Linear(2, 3)
    assert names(model) == ["first.weight", "first.bias", "second.weight", "second.bias"]
    assert old not in list(model.layers_within()) and model.layers == [model.first, model.second]
    assert model(x).shape == (1, 3)
    with plain():
        assert model(x).shape == (1, 3)
    copied = copy.deepcopy(model)
    copied.first = Linear(2, 2)
    assert names(copied) == names(model) and copied.layers[0] is copied.first is not model.first


def test_a_part_with_two_names_stays_in_the_list_as_long_as_it_has_one():
    model = InTurn()
    model.second = model.first
    model.first = Linear(2, 2)
    assert model.layers == [model.second, model.second] and len(model.parameters) == 4
    model.second = Linear(2, 1)
    assert model.layers == [model.second, model.second]


def test_the_list_of_a_composite_may_be_set_before_and_made_twice():
    class Early(Composite):
        def __init__(self):
            self.layers = [Linear(2, 2), Linear(2, 1)]
            super().__init__(self.layers)

    model = Early()
    assert len(model.parameters) == 4
    model.__init__()
    assert len(model.parameters) == 4


def test_layers_that_only_the_list_holds_are_found_beside_others():
    class Half(Composite):
        def __init__(self):
            self.first = Linear(2, 2)
            super().__init__([self.first, Linear(2, 1)])

    model = Half()
    assert names(model) == ["first.weight", "first.bias", "layers.1.weight", "layers.1.bias"]
    model.layers.insert(0, Linear(2, 2))
    assert "layers.0.weight" in names(model)


def test_showing_a_part_does_not_shorten_the_names_of_its_parameters():
    model = Ahead()
    first = names(model)
    assert repr(model.second) == "Linear(3 parameters)"
    assert [tensor.name for tensor in (model.first.weight, model.second.weight)] == ["first.weight", "second.weight"]
    assert names(model) == first


def test_a_copy_draws_from_the_default_generator_too():
    copied = copy.deepcopy(Composite([Dropout(0.5), Linear(2, 2)]))
    assert copied.layers[0].generator is default_generator()
    own = Dropout(0.5, np.random.default_rng(1))
    assert copy.deepcopy(own).generator is not own.generator
