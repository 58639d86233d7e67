#pragma once
#include "pullback/bind.h"
