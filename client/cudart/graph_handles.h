// CUDA runtime's handles of graphs, nodes and executable graphs, and the core's.
#pragma once

#include "client/cudart/front.h"
#include "client/session/graph_lists.h"

namespace slate::cudart {

using client::handle_of;
using client::handles_of;

}  // namespace slate::cudart
