// Functions and modules by pybind11's names: overloads, names of arguments, defaults, guards.
#pragma once
#include "python_values.h"

namespace pybind11 {

// ---- what can be said of a function
struct arg_v {
  std::string name;
  Object value;  // its default, where it has one
  bool none_allowed = true;
};
struct arg : arg_v {
  explicit arg(const char* n) { name = n; }
  arg& noconvert(bool = true) { return *this; }
  arg& none(bool on = true) {
    none_allowed = on;
    return *this;
  }
  template <class T>
  arg_v operator=(const T& v) const { return {name, pullback::Arg(v).object(), none_allowed}; }
};
inline namespace literals {
inline arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals
struct kw_only {};
struct pos_only {};
struct doc {
  const char* words;
};
struct name {
  const char* words;
};
struct is_operator {};
struct dynamic_attr {};
struct module_local {};
enum class return_value_policy { automatic, automatic_reference, take_ownership, copy, move, reference, reference_internal };
template <class... G>
struct call_guard {
  using type = std::tuple<G...>;
};
template <class G>
struct call_guard<G> {
  using type = G;
};
template <size_t, size_t>
struct keep_alive {};
template <class... A>
struct init {};

namespace detail {

struct Overload {
  std::unique_ptr<pullback::Body> body;
  std::vector<arg_v> arguments;
  std::string words;
  bool takes_args = false, takes_kwargs = false;
};
struct Function {  // all overloads of one name
  std::string name;
  std::vector<Overload> overloads;
  PyMethodDef definition{};
  std::string full_doc;
};

inline std::string signature(const Overload& o, size_t first = 0) {
  std::string out = "(";
  for (size_t i = first; i < o.body->count; i++) {
    const arg_v* a = i < o.arguments.size() ? &o.arguments[i] : nullptr;
    out += i > first ? ", " : "";
    out += (a ? a->name : "arg" + std::to_string(i)) + ": " + o.body->python_types[i];
    if (a && a->value) {
      Object shown = Object::steal(PyObject_Repr(a->value.get()));
      out += " = " + pullback::words(shown.get());
    }
  }
  return out + ") -> " + o.body->python_return;
}

// The arguments of one overload, in order; false where they do not fit its parameters.
inline bool arrange(const Overload& o, PyObject* given, PyObject* named, std::vector<Object>& out) {
  size_t plain = o.body->count - o.takes_args - o.takes_kwargs, count = static_cast<size_t>(PyTuple_GET_SIZE(given));
  if (count > plain && !o.takes_args) return false;
  Py_ssize_t used = 0;
  for (size_t i = 0; i < plain; i++) {
    const arg_v* a = i < o.arguments.size() ? &o.arguments[i] : nullptr;
    PyObject* by_name = a && named ? PyDict_GetItemString(named, a->name.c_str()) : nullptr;
    if (i < count) {
      if (by_name) return false;
      out.push_back(Object::borrow(PyTuple_GET_ITEM(given, static_cast<Py_ssize_t>(i))));
    } else if (by_name) {
      used++;
      out.push_back(Object::borrow(by_name));
    } else if (a && a->value) {
      out.push_back(a->value);
    } else {
      return false;
    }
  }
  if (o.takes_args) out.push_back(Object::steal(PyTuple_GetSlice(given, static_cast<Py_ssize_t>(plain), PY_SSIZE_T_MAX)));
  if (o.takes_kwargs) {
    Object rest = named ? Object::steal(PyDict_Copy(named)) : Object::steal(PyDict_New());
    for (const arg_v& a : o.arguments)
      if (PyDict_GetItemString(rest.get(), a.name.c_str())) PyDict_DelItemString(rest.get(), a.name.c_str());
    out.push_back(rest);
    return true;
  }
  return !named || used == PyDict_Size(named);
}
[[noreturn]] inline void no_overload(const Function& f, PyObject* given, PyObject* named) {
  const bool making = f.name == "__init__" && PyTuple_GET_SIZE(given) > 0;  // of what is being made there is nothing to show
  std::string words = f.name + "(): incompatible " + (making ? "constructor" : "function") +
                      " arguments. The following argument types are supported:\n";
  const std::string kind = making ? Py_TYPE(PyTuple_GET_ITEM(given, 0))->tp_name : "";
  for (size_t i = 0; i < f.overloads.size(); i++) {
    std::string said = signature(f.overloads[i], making);
    words += "    " + std::to_string(i + 1) + ". " + (making ? kind + said.substr(0, said.rfind(" -> ")) : said) + "\n";
  }
  words += "\nInvoked with: ";
  for (Py_ssize_t i = making; i < PyTuple_GET_SIZE(given); i++) {
    Object shown = Object::steal(PyObject_Repr(PyTuple_GET_ITEM(given, i)));
    words += (i > making ? ", " : "") + pullback::words(shown.get());
  }
  if (named && PyDict_Size(named)) words += "; kwargs: " + pullback::words(named);
  throw c10::TypeError(words);
}
inline Object run(Function& f, PyObject* given, PyObject* named) {
  for (Overload& o : f.overloads) {
    std::vector<Object> values;
    if (!arrange(o, given, named, values)) continue;
    std::vector<PyObject*> places;
    for (const Object& v : values) places.push_back(v.get());
    try {
      return o.body->run(places.data());
    } catch (const pullback::NoCast&) {  // the next overload may take it
    }
  }
  no_overload(f, given, named);
}
inline PyObject* call(PyObject* self, PyObject* given, PyObject* named) {
  auto* f = static_cast<Function*>(PyCapsule_GetPointer(self, "pullback.function"));
  try {
    return run(*f, given, named).release();
  } catch (...) {
    pullback::raise_current();
    return nullptr;
  }
}

template <class T>
void say(Overload& o, const T& said) {  // policies of lifetime and the like say nothing: values are copied or shared
  if constexpr (std::is_base_of_v<arg_v, T>) o.arguments.push_back(said);
  else if constexpr (std::is_same_v<T, doc>) o.words = said.words;
  else if constexpr (std::is_convertible_v<const T&, const char*>) o.words = said;
}
template <class... E>
struct GuardOf {
  using type = pullback::NoGuard;
};
template <class E, class... Rest>
struct GuardOf<E, Rest...> : GuardOf<Rest...> {};
template <class... G, class... Rest>
struct GuardOf<call_guard<G...>, Rest...> {
  using type = typename call_guard<G...>::type;
};

template <class... E>
Overload overload(pullback::Body* body, bool is_method, const E&... extra) {
  Overload o;
  o.body.reset(body);
  if (is_method) o.arguments.push_back({"self", Object(), true});
  (say(o, extra), ...);
  if (!body->python_types.empty() && body->python_types.back() == "**kwargs") o.takes_kwargs = true;
  for (const std::string& t : body->python_types) o.takes_args = o.takes_args || t == "*args";
  return o;
}
inline Function* known(const Object& scope, const char* name) {  // the function of this name that was bound before
  PyObject* found = PyObject_GetAttrString(scope.get(), name);
  if (!found) {
    PyErr_Clear();
    return nullptr;
  }
  Object owner = Object::steal(found);
  PyObject* f = PyInstanceMethod_Check(found) ? PyInstanceMethod_GET_FUNCTION(found) : found;
  if (!PyCFunction_Check(f)) return nullptr;
  PyObject* self = PyCFunction_GET_SELF(f);
  return self && PyCapsule_IsValid(self, "pullback.function")
             ? static_cast<Function*>(PyCapsule_GetPointer(self, "pullback.function"))
             : nullptr;
}
inline void write_doc(Function& f) {
  f.full_doc.clear();
  for (const Overload& o : f.overloads)
    f.full_doc += f.name + signature(o) + "\n" + (o.words.empty() ? "" : "\n" + o.words + "\n");
  f.definition.ml_doc = f.full_doc.c_str();
}
// Add an overload to a scope's function; gives the Python function where it is new.
inline Object bind(const Object& scope, const char* name, Overload o, const Object& module) {
  if (Function* f = known(scope, name)) {
    f->overloads.push_back(std::move(o));
    write_doc(*f);
    return Object();
  }
  auto* f = new Function{name, {}, {}, {}};
  f->overloads.push_back(std::move(o));
  f->definition.ml_name = f->name.c_str();
  f->definition.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call));
  f->definition.ml_flags = METH_VARARGS | METH_KEYWORDS;
  write_doc(*f);
  Object capsule = Object::steal(PyCapsule_New(f, "pullback.function", [](PyObject* c) {
    delete static_cast<Function*>(PyCapsule_GetPointer(c, "pullback.function"));
  }));
  return Object::steal(PyCFunction_NewEx(&f->definition, capsule.get(), module ? module.get() : nullptr));
}

}  // namespace detail

class module_ : public object {
 public:
  using object::object;
  template <class F, class... E>
  module_& def(const char* name, F&& f, const E&... extra) {
    using Guard = typename detail::GuardOf<E...>::type;
    Object made = detail::bind(held_, name, detail::overload(pullback::body_of<Guard>(std::forward<F>(f)), false, extra...),
                               held_.attr("__name__"));
    if (made) held_.set_attr(name, made);
    return *this;
  }
  place doc() const { return attr("__doc__"); }
  module_ def_submodule(const char* name, const char* words = nullptr) {
    std::string full = pullback::words(held_.attr("__name__").get()) + "." + name;
    module_ made(Object::borrow(PyImport_AddModule(full.c_str())));
    if (words) made.held().set_attr("__doc__", pullback::text(words));
    held_.set_attr(name, made.held());
    return made;
  }
  static module_ import(const char* name) { return module_(Object::steal(PyImport_ImportModule(name))); }
};
using module = module_;

}  // namespace pybind11
