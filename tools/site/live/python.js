// Loads Pyodide from the folder beside this one, for the pages' worker and for the kernel of the notebooks.
import { loadPyodide as load } from "../PYODIDE/pyodide.mjs";

const PYODIDE = new URL("../PYODIDE/", import.meta.url).href;

// Plain static servers compress nothing, so the largest file is stored compressed.
export const plain = self.fetch.bind(self);
self.fetch = async (resource, options) => {
  const address = String(resource.url ?? resource);
  if (!address.endsWith("/pyodide.asm.wasm")) return plain(resource, options);
  const stored = await plain(`${address}.deflated`, options);
  if (!stored.ok) return stored;
  return new Response(stored.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "Content-Type": "application/wasm" } });
};

export const loadPyodide = (options) => load({ ...options, indexURL: PYODIDE });
