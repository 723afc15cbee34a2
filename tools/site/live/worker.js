// Runs Python and labkit's simulators for all players of a page; everything comes from the page's own host.
import { loadPyodide, plain } from "./python.js";

async function begin() {
  const packed = plain(new URL("labkit.zip", import.meta.url)).then((answer) => {
    if (!answer.ok) throw new Error(`labkit.zip: ${answer.status}`);
    return answer.arrayBuffer();
  });
  const python = await loadPyodide();
  python.unpackArchive(await packed, "zip", { extractDir: "/labkit" });
  python.runPython("import sys; sys.path.insert(0, '/labkit')");
  return python.pyimport("labkit.view.worker").Players();
}

const players = begin();
let turn = Promise.resolve();

self.addEventListener("message", ({ data }) => {
  turn = turn.then(async () => {
    try {
      self.postMessage({ player: JSON.parse(data).player, answers: (await players).answer(data) });
    } catch (error) {
      self.postMessage({ failed: String(error) });
    }
  });
});
players.catch((error) => self.postMessage({ failed: String(error) }));
