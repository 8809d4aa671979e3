// Shows the value under the mouse, the finger or the keyboard's focus.
const tip = document.getElementById("tip");
function show(mark, x, y) {
  tip.textContent = mark.dataset.tip;
  tip.classList.add("on");
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
  tip.style.top = Math.max(4, y - box.height - 12) + "px";
}
function hide() { tip.classList.remove("on"); }
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest && event.target.closest("[data-tip]");
  if (mark) show(mark, event.clientX, event.clientY); else hide();
});
document.addEventListener("focusin", (event) => {
  const mark = event.target.closest("[data-tip]");
  if (!mark) return hide();
  const box = mark.getBoundingClientRect();
  show(mark, box.x + box.width / 2, box.y);
});
document.addEventListener("focusout", hide);
