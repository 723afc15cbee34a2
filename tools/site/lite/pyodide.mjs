// The kernel's Pyodide: the one of the live pages, with the wheels beside this file.
import { loadPyodide as load } from "LOADER";

const HERE = new URL(".", import.meta.url).href;

// IPython runs what lies in this folder before the first cell.
const STARTUP = "/home/pyodide/.ipython/profile_default/startup";
const START = `import labkit.teach.recordings
labkit.teach.recordings.install()
del labkit
`;

export async function loadPyodide(options) {
  const python = await load({ ...options, lockFileURL: `${HERE}pyodide-lock.json`, packageBaseUrl: HERE });
  python.FS.mkdirTree(STARTUP);
  python.FS.writeFile(`${STARTUP}/recordings.py`, START);
  return python;
}
