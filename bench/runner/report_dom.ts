/**
 * What the report needs of a page.
 *
 * @module
 */

/** The part of an element that is used: a page's types and a worker's exclude one another. */
export interface Element {
  id: string;
  className: string;
  textContent: string;
  style: Record<string, string>;
  append(...children: (Element | string)[]): void;
  setAttribute(name: string, value: string): void;
}
interface Document {
  readonly body: Element;
  getElementById(id: string): Element;
  createElement(name: string): Element;
}

export const { document, getComputedStyle } = globalThis as unknown as {
  document: Document;
  getComputedStyle(element: Element): { color: string };
};

/** Makes an element. */
export function element(name: string, text = "", className = ""): Element {
  const made = document.createElement(name);
  if (text !== "") made.textContent = text;
  if (className !== "") made.className = className;
  return made;
}
