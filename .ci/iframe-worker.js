// Browsers start no worker for a page that was opened from a folder. There, the script
// of the search runs in a hidden frame, which takes the worker's place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.document.write("<body></body>");
      this.inside.document.close();
      // What the script tells the page.
      this.inside.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inside.document.createElement("script");
      script.src = new URL(address, document.baseURI).href;
      this.started = new Promise((done) => script.addEventListener("load", done));
      this.inside.document.body.append(script);
    }

    postMessage(data) {
      const message = new MessageEvent("message", { data });
      this.started.then(() => this.inside.dispatchEvent(message));
    }
  };
}
