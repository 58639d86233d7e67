#pragma once
#include "pullback/autograd.h"
