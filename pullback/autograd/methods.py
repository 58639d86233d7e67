"""What autograd adds to Tensor: `backward`, `grad`, `grad_fn`, hooks, `data`, `detach_`."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict

from ..core import modes
from ..core.geometry import Geometry
from ..core.layers import extend
from ..core.modes import ambient
from ..core.node import SAVED, AccumulateGrad, Node, SavedTensor, current_autograd, edge_of, own_autograd, requires_grad
from ..core.storage import storage_of
from ..core.tensor import CUDA, DISPATCH_SUBCLASS, META, PLAIN, SPARSE, TRANSFORMED, Tensor, innermost, undeletable
from ..ops.system.inplace import told_mode
from ..ops.system.overrides import any_overridden, call_overridden
from .calls import backward as run_backward
from .calls import backward_from_scalar
from .transformed_hooks import hook_of_node, hook_of_tensor
from .views import view_func


class RemovableHandle:
    """Removes a hook from the table that holds it."""

    next_id = 0

    def __init__(self, hooks: dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra = tuple(weakref.ref(d) for d in ([extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()))

    def remove(self) -> None:
        for ref in (self.hooks_dict_ref, *self.extra):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple:
        state = (self.hooks_dict_ref(), self.id)
        return (*state, tuple(ref() for ref in self.extra)) if self.extra else state

    def __setstate__(self, state: tuple) -> None:
        hooks, self.id, *extra = state
        self.hooks_dict_ref = weakref.ref(Hooks() if hooks is None else hooks)
        self.extra = tuple(weakref.ref(d) for d in (extra[0] if extra else ()) if d is not None)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


class Hooks(OrderedDict):
    """Hooks by handle id; weakly referenced by their handles."""


def add_hook(hooks: Hooks, hook) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
    """Compute the gradients of the leaves this tensor depends on.

    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> w.grad
    tensor([2., 4.])
    """
    if gradient is None and inputs is None and not create_graph and self.__class__ in PLAIN and not self._keys:
        if ambient.mode < modes.LISTENING and backward_from_scalar(self, bool(retain_graph)):
            return
    if ambient.mode & modes.FUNCTION or any_overridden((self,)):
        given = {"gradient": gradient, "retain_graph": retain_graph, "create_graph": create_graph, "inputs": inputs}
        return call_overridden(Tensor.backward, (self,), given)
    run_backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def get_grad(self):
    """The gradient that `backward` added up here; None before the first one.

    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> w.grad is None
    True
    >>> w.sum().backward()
    >>> w.grad
    tensor([1., 1.])
    """
    a = self._autograd
    if a is None:
        return None
    if a.grad is None and a.edge is not None and not a.retains_grad and a.requires_grad:
        import warnings

        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during "
            "autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf "
            "Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead.",
            stacklevel=2,
        )
    return a.grad


def set_grad(self, value) -> None:
    if value is None:
        if self._autograd is not None and self._autograd.grad is not None:
            self._autograd.grad = None
        return
    if not isinstance(value, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
    if value is self:
        raise RuntimeError("can't assign Variable as its own grad")
    wanted = get_grad_dtype(self) if self.is_leaf else self.dtype
    if wanted is not None and value.dtype is not wanted:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{value.dtype.alias}' to a tensor with grad_dtype '{wanted.scalar_name}'. The gradient must match the tensor's dtype (tensor.grad_dtype controls what dtypes are allowed)."
        )
    if value.device is not self.device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device type '{self.device.type}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if value.shape != self.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
        )
    own_autograd(self).grad = value


def del_grad(self) -> None:
    set_grad(self, None)


def grad_fn(self) -> Node | None:
    """The node of the graph that made this tensor; None for a leaf.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> (w * 2).grad_fn.name()
    'MulBackward0'
    """
    a = current_autograd(self)
    return a.edge[0] if a is not None and a.edge is not None else None


@modes.whole_in_graphs
def register_hook(self, hook) -> RemovableHandle:
    """Call `hook(grad)` when this tensor's gradient is known; what it returns replaces the gradient.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> handle = w.register_hook(lambda grad: grad * 10)
    >>> w.sum().backward()
    >>> w.grad
    tensor([10.])
    """
    if not requires_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if ambient.transforms or ambient.reverse_levels:
        hook = hook_of_tensor(hook, self, edge_of(self)[0])
    a = own_autograd(self)
    if a.edge is not None and isinstance(a.edge[0], AccumulateGrad):  # what stands for a leaf inside a transform
        a = own_autograd(a.edge[0].variable)
    if a.edge is None:
        if a.hooks is None:
            a.hooks = Hooks()
        return add_hook(a.hooks, hook)
    node, number = edge_of(self)
    if node.tensor_pre_hooks is None:
        node.tensor_pre_hooks = {}
        node.hooked = True
    return add_hook(node.tensor_pre_hooks.setdefault(number, Hooks()), hook)


@modes.whole_in_graphs
def register_post_accumulate_grad_hook(self, hook) -> RemovableHandle:
    """Call `hook(tensor)` after its `.grad` was updated.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> handle = w.register_post_accumulate_grad_hook(lambda p: print(p.grad))
    >>> w.sum().backward()
    tensor([1.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    a = own_autograd(self)
    if a.post_accumulate_hooks is None:
        a.post_accumulate_hooks = Hooks()
    return add_hook(a.post_accumulate_hooks, hook)


@modes.whole_in_graphs
def retain_grad(self) -> None:
    """Keep `.grad` of this result during backward.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> y = w * 2
    >>> y.retain_grad()
    >>> (y * 3).sum().backward()
    >>> y.grad
    tensor([3.])
    """
    modes.outside_transforms(
        "Tensor.retain_grad()", "call retain_grad() outside of a function being transformed instead."
    )
    if not requires_grad(self):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    a = self._autograd
    if a.edge is None or a.retains_grad:
        return
    a.retains_grad = True
    node, number = edge_of(self)
    if node.retain_grad_hooks is None:
        node.retain_grad_hooks = {}
        node.hooked = True
    kept = weakref.ref(a)

    def keep(g: Tensor) -> Tensor:
        meta = kept()
        if meta is not None:
            before = meta.grad
            meta.grad = g if before is None or _is_over(before) else before + g
        return g

    node.retain_grad_hooks[number] = keep


def _is_over(t: Tensor) -> bool:
    """Whether a tensor stands for the examples of a vmap that has ended, so that there is nothing to add to."""
    wrapped = t.__dict__.get("wrapped") if t._keys & TRANSFORMED else None
    return wrapped is not None and wrapped.level not in ambient.transforms


def get_backward_hooks(self):
    return self._autograd.hooks if self._autograd is not None else None


def set_backward_hooks(self, hooks) -> None:
    own_autograd(self).hooks = None if hooks is None else Hooks(hooks)


def get_grad_dtype(self):
    """The dtype that this leaf's gradient must have; None where any will do.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> w.grad_dtype
    torch.float32
    """
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    wanted = self._autograd.grad_dtype if self._autograd is not None else Ellipsis
    return self.dtype if wanted is Ellipsis else wanted


def set_grad_dtype(self, value) -> None:
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if (
        self._autograd is not None
        and self._autograd.grad is not None
        and value is not None
        and self._autograd.grad.dtype is not value
    ):
        raise RuntimeError(
            f"Cannot set grad_dtype to {value} because there is already a gradient with dtype {self._autograd.grad.dtype}. Please clear the gradient first."
        )
    own_autograd(self).grad_dtype = value


def get_data(self) -> Tensor:
    """The same memory without history and with a version of its own.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> w.data
    tensor([1.])
    """
    if ambient.mode & modes.CAPTURE:
        return ambient.captures[-1].call(get_data, (self,), {})
    if self._keys & TRANSFORMED:
        raise RuntimeError("accessing `data` under vmap transform is not allowed: please use `detach()`")
    t = self.detach()
    t._counter = [self._counter[0]]
    return t


@modes.whole_in_graphs
def set_data(self, value: Tensor) -> None:
    """Give this tensor the memory and shape of another, keeping its own place in the graph."""
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if (self._keys | value._keys) & TRANSFORMED:
        raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed: please use `copy_`")
    unlike = (value._keys ^ self._keys) & (SPARSE | META | DISPATCH_SUBCLASS)
    if unlike == DISPATCH_SUBCLASS and self._array.__class__ is not Geometry is not value._array.__class__:
        unlike = 0  # both have data: the class that dispatches stays what it is
    if unlike:
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
        )
    if self.requires_grad and value.dtype.category < 2:
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")

    told_mode("set_memory", self, value)
    self._array, self._own_dtype, self._own_device, self._offset = (
        value._array,
        value.dtype,
        value.device,
        value._offset,
    )
    self._memory = storage_of(value)
    self._keys = self._keys & ~CUDA | value._keys & CUDA


def volatile(self) -> bool:
    """What stood here before `no_grad`: always False.

    >>> torch.ones(1).volatile
    False
    """
    import warnings

    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


@modes.whole_in_graphs
def detach_(self) -> Tensor:
    """Drop this tensor's history in place.

    >>> x = torch.tensor([1.0], requires_grad=True) * 2
    >>> x.detach_()
    tensor([2.])
    """
    if self._view_info is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as a solution."
        )
    a = self._autograd
    if self._keys & TRANSFORMED:  # its history is that of the value under it
        if a is not None:
            apart = self.detach()
            self._autograd, self.wrapped = apart._autograd, apart.wrapped
            _without_tangents(innermost(apart))
    elif a is None or a.edge is not None:
        self._autograd = None
    else:  # a leaf: graphs that know it still run, and its gradient stays
        a.requires_grad = False
        _without_tangents(self)
    return self


def _without_tangents(t: Tensor) -> None:
    """A copy that is detached has the tangents of what it is of; what is detached in place loses them."""
    if t._autograd is not None and t._autograd.tangents:
        t._autograd.tangents = None


def retains_grad(self: Tensor) -> bool:
    """Whether this tensor is no leaf and keeps its gradient all the same.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> (w * 2).retains_grad
    False
    """
    own = self._autograd
    return own is not None and own.retains_grad


def name(self: Tensor) -> None:
    """What stood here for names of variables: always None.

    >>> torch.ones(1).name is None
    True
    """


def use_count(self: Tensor) -> int:
    """How many own the tensor: the program, however many names it has there, and each place in a graph that keeps it."""
    owners = (
        isinstance(r, (Node, SavedTensor)) or r.__class__ is tuple and len(r) == 4 and r[0] is SAVED
        for r in gc.get_referrers(self)
    )
    return 1 + sum(owners)


extend(
    Tensor,
    __name__,
    _use_count=use_count,
    backward=backward,
    _grad=property(get_grad, set_grad, del_grad),
    grad=property(get_grad, set_grad, del_grad),
    grad_fn=property(grad_fn),
    _grad_fn=property(grad_fn, None, undeletable("_grad_fn")),
    data=property(get_data, set_data, undeletable("data")),
    _backward_hooks=property(get_backward_hooks, set_backward_hooks, undeletable("_backward_hooks")),
    grad_dtype=property(get_grad_dtype, set_grad_dtype),
    detach_=detach_,
    register_hook=register_hook,
    register_post_accumulate_grad_hook=register_post_accumulate_grad_hook,
    retain_grad=retain_grad,
    retains_grad=property(retains_grad),
    name=property(name),
    volatile=property(volatile),
    _view_func=view_func,
)


def node_hooks(node: Node, kind: str) -> Hooks:
    """The table of one kind of a node's hooks, made at first need."""
    table = getattr(node, kind)
    if table is None:
        table = Hooks()
        setattr(node, kind, table)
        if type(node).__name__ != "AccumulateGrad":
            node.hooked = True
    return table


def register_node_hook(self: Node, fn) -> RemovableHandle:
    """Call `fn(grad_inputs, grad_outputs)` after this node ran; what it returns replaces the gradients of its inputs."""
    return add_hook(node_hooks(self, "post_hooks"), hook_of_node(fn, self))


def register_node_prehook(self: Node, fn) -> RemovableHandle:
    """Call `fn(grad_outputs)` before this node runs; what it returns replaces them."""
    return add_hook(node_hooks(self, "pre_hooks"), hook_of_node(fn, self))


extend(Node, __name__, register_hook=register_node_hook, register_prehook=register_node_prehook)
