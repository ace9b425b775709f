"""Benchmark environments; see `envs.base` for the contract. Importing this registers their gymnasium ids."""

import gymnasium

gymnasium.register(id="EMPG/WebShop-v0", entry_point="envs.webshop:make", order_enforce=False)
gymnasium.register(id="EMPG/ALFWorld-v0", entry_point="envs.alfworld:make", order_enforce=False)
gymnasium.register(id="EMPG/DeepSearch-v0", entry_point="envs.deepsearch:make", order_enforce=False)
