/** A slider over a few values. @module */

/**
 * Makes one of the input `id`, and writes its value, by `format`, into the output beside it. `wish`
 * gets each value that the user chooses, and the first one at once.
 */
export function slider(id, values, first, format, wish) {
  const input = document.getElementById(id);
  const shown = document.getElementById(`${id}-shown`);
  Object.assign(input, { min: 0, max: values.length - 1, step: 1 });
  input.value = values.indexOf(first);
  input.oninput = () => {
    const value = values[input.valueAsNumber];
    shown.textContent = format(value);
    input.setAttribute("aria-valuetext", shown.textContent);
    wish(value);
  };
  input.oninput();
}
