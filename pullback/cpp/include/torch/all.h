#pragma once
#include "pullback/dispatch.h"
#include "pullback/library.h"
#include "pullback/autograd.h"
