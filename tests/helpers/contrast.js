// The texts of a page whose contrast with what is behind them is below 4.5, level AA of WCAG 2.
(() => {
  const read = (colour) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => sum + weight * linear(colour[i] / 255), 0);
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode, element = text.parentElement;
    if (!text.data.trim() || /^(SCRIPT|STYLE|OPTION)$/.test(element.tagName) || !element.checkVisibility()) continue;
    const chain = [];
    for (let each = element; each; each = each.parentElement) chain.unshift(each);
    const behind = chain.reduce((below, each) => over(read(getComputedStyle(each).backgroundColor), below), [255, 255, 255]);
    const front = over(read(getComputedStyle(element).color), behind);
    const [bright, dark] = [light(front), light(behind)].sort((a, b) => b - a), ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < 4.5) found.push(`${element.className || element.tagName} ${ratio.toFixed(2)} ${text.data.slice(0, 20)}`);
  }
  return found;
})();
