// Repeats a request while its view is shown.

const SLOWEST = 30;

/**
 * Run `work` now and again `seconds` after it has ended, until `stop`; not while the page is hidden.
 *
 * `now` runs it at once, `pace` changes the seconds.
 * After an error it waits longer each time, and `failed` is called with the error, or null once it works again.
 */
export function repeat(work, seconds, failed) {
  let timer = null;
  let stopped = false;
  let usual = seconds;
  let pause = seconds;
  let running = null;
  let again = false;

  async function once(fresh) {
    if (running) {
      again = again || fresh;
      return running;
    }
    clearTimeout(timer);
    running = (async () => {
      try {
        await work(fresh);
        pause = usual;
        if (!stopped) failed(null);
      } catch (error) {
        pause = Math.min(SLOWEST, pause * 2);
        if (!stopped && error.name !== "AbortError") failed(error);
      }
    })();
    await running;
    running = null;
    if (stopped) return undefined;
    if (again) {
      again = false;
      return once(true);
    }
    if (!document.hidden) timer = setTimeout(() => once(false), pause * 1000);
    return undefined;
  }

  function shown() {
    if (!document.hidden && !stopped) once(false);
  }

  document.addEventListener("visibilitychange", shown);
  once(true);
  return {
    now: () => once(true),
    pace(other) {
      usual = other;
      pause = other;
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    },
  };
}
