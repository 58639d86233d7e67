// A small binder with pybind11's surface: functions and lambdas with names, defaults and overloads, modules, simple
// classes and enumerations, and the common Python types as C++ values.
//
// What is not here does not compile: trampolines (virtual functions overridden in Python), buffers and py::array,
// inheritance between bound classes, iterators, weak references.
#pragma once
#include "bind_class.h"

namespace pullback {

inline PyObject* make_module(const char* name, void (*fill)(pybind11::module_&)) {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, nullptr, nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
  definition.m_name = name;
  try {
    bridge().call("raise_failures");  // of TORCH_LIBRARY blocks that ran while the library was loading
    pybind11::module_ made(Object::steal(PyModule_Create(&definition)));
    fill(made);
    return Object(made.held()).release();
  } catch (...) {
    raise_current();
    return nullptr;
  }
}

}  // namespace pullback

#define PULLBACK_TEXT_(x) #x
#define PULLBACK_TEXT(x) PULLBACK_TEXT_(x)
#define PULLBACK_MODULE_(name, m)                                                                       \
  static void pullback_fill_##name(::pybind11::module_&);                                               \
  extern "C" __attribute__((visibility("default"))) PyObject* PyInit_##name() {                         \
    return ::pullback::make_module(PULLBACK_TEXT(name), &pullback_fill_##name);                         \
  }                                                                                                     \
  void pullback_fill_##name([[maybe_unused]] ::pybind11::module_& m)
#define PYBIND11_MODULE(name, m, ...) PULLBACK_MODULE_(name, m)
namespace py = pybind11;
namespace torch {
template <class F>
F&& wrap_pybind_function(F&& f) { return std::forward<F>(f); }
}  // namespace torch
