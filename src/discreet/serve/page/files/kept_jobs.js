// The ids of the jobs that this browser submitted without a token: the server does not list them, since users
// behind one address are one user to it.

const KEY = "table-builder-jobs";
const MOST = 20;

/** The ids, the newest first; none where the browser stores nothing. */
export function keptJobs() {
  try {
    const held = JSON.parse(localStorage.getItem(KEY) || "[]");
    return Array.isArray(held) ? held.filter((id) => typeof id === "string").slice(0, MOST) : [];
  } catch {
    return [];
  }
}

/** Store these ids. */
export function keepJobs(ids) {
  try {
    localStorage.setItem(KEY, JSON.stringify(ids.slice(0, MOST)));
  } catch {
    // storage is switched off: the list ends with the visit
  }
}
