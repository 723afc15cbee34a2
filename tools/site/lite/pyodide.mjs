// The kernel's Pyodide: the one of the live pages, with the wheels beside this file.
import { loadPyodide as load } from "LOADER";

const HERE = new URL(".", import.meta.url).href;

export const loadPyodide = (options) => load({ ...options, lockFileURL: `${HERE}pyodide-lock.json`, packageBaseUrl: HERE });
